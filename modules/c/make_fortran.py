"""Writes gridbuf.f90: the procedures that the seven kinds of elements share, once for each kind and rank.

usage: make_fortran.py gridbuf.f90.in gridbuf.f90
"""

import pathlib
import sys
import textwrap

KINDS = {
    "real32": "real(c_float)",
    "real64": "real(c_double)",
    "int32": "integer(c_int32_t)",
    "int64": "integer(c_int64_t)",
    "logical": "logical(c_bool)",
    "complex32": "complex(c_float_complex)",
    "complex64": "complex(c_double_complex)",
}

# One C function for all kinds: the descriptor has the type. Different interfaces of one C name need a name for each.
INTERFACE = """
    integer(c_int32_t) function c_point_{name}(handle, side, mode, lower, pointer, text) &
        bind(c, name='gridbuf_f_point_{name}')
      import
      type(c_ptr), value :: handle
      integer(c_int32_t), value :: side, mode
      integer(c_int64_t), intent(in) :: lower(*)
      {type}, pointer, intent(inout) :: pointer(..)
      character(kind=c_char), intent(out) :: text(*)
    end function
    integer(c_int32_t) function c_wrap_{name}(array, options, out, lower, text) &
        bind(c, name='gridbuf_f_wrap_{name}')
      import
      {type}, pointer, intent(in) :: array(..)
      type(c_options), intent(inout) :: options
      type(c_ptr), intent(out) :: out
      integer(c_int64_t), intent(out) :: lower(*)
      character(kind=c_char), intent(out) :: text(*)
    end function"""

# A procedure for each rank: flang 19 has no procedures of Fortran with assumed ranks.
RANKS = range(1, 8)

PROCEDURES = """
  subroutine host_{name}_{rank}(self, pointer, mode, stat)
    class(storage), intent(in) :: self
    {type}, pointer, intent(out) :: pointer({colons})
    integer, intent(in), optional :: mode
    integer, intent(out), optional :: stat
    nullify (pointer)
    call finish_call(c_point_{name}(self%handle, side_host, mode_or_read(mode), self%lower, pointer, own_text), stat)
  end subroutine

  subroutine wrap_{name}_{rank}(self, array, halo, kind, lower, stat)
    class(storage), intent(inout) :: self
    {type}, pointer, intent(in) :: array({colons})
    integer, intent(in), optional :: halo(:, :), kind, lower(:)
    integer, intent(out), optional :: stat
    type(c_options) :: options
    integer(c_int64_t), target :: widths(2, max_rank)
    integer(c_int64_t) :: bounds(max_rank)
    type(c_ptr) :: made
    integer(c_int32_t) :: status
    made = c_null_ptr
    status = 1
    if (begins_wrap(self, {rank}, options, widths, halo, lower)) status = c_wrap_{name}(array, options, made, bounds, own_text)
    call self%adopt(status, made, bounds, kind, lower, stat)
  end subroutine
"""


def main() -> None:
    source, target = map(pathlib.Path, sys.argv[1:])
    text = source.read_text()
    procedures = [(name, rank) for name in KINDS for rank in RANKS]
    parts = {
        "@INTERFACES@": "".join(
            INTERFACE.format(name=name, type=type_) for name, type_ in KINDS.items()
        ),
        "@PROCEDURES@": "".join(
            PROCEDURES.format(name=name, type=KINDS[name], rank=rank, colons=", ".join(":" * rank))
            for name, rank in procedures
        ),
    }
    for verb in ("host", "wrap"):
        names = ", ".join(f"{verb}_{name}_{rank}" for name, rank in procedures)
        names = textwrap.fill(names, 100).replace("\n", " &\n        ")
        parts[f"@{verb.upper()}@"] = (
            f"    generic :: {verb} => {names}\n    procedure, private :: {names}\n"
        )
    for mark, part in parts.items():
        text = text.replace(mark + "\n", part.removeprefix("\n").rstrip("\n") + "\n")
    target.write_text(text)


if __name__ == "__main__":
    main()
