"""Writes gridbuf.f90: the procedures that the seven kinds of elements share, once for each kind.

usage: make_fortran.py gridbuf.f90.in gridbuf.f90
"""

import pathlib
import sys

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

PROCEDURES = """
  subroutine host_{name}(self, pointer, mode, stat)
    class(storage), intent(in) :: self
    {type}, pointer, intent(inout) :: pointer(..)
    integer, intent(in), optional :: mode
    integer, intent(out), optional :: stat
    integer(c_int32_t) :: chosen
    chosen = mode_read
    if (present(mode)) chosen = int(mode, c_int32_t)
    call finish_call(c_point_{name}(self%handle, side_host, chosen, self%lower, pointer, own_text), stat)
  end subroutine host_{name}

  subroutine wrap_{name}(self, array, halo, kind, stat)
    class(storage), intent(inout) :: self
    {type}, pointer, intent(in) :: array(..)
    integer, intent(in), optional :: halo(:, :), kind
    integer, intent(out), optional :: stat
    type(c_options) :: options
    integer(c_int64_t), target :: widths(2, max_rank)
    integer(c_int64_t) :: bounds(max_rank)
    integer(c_int32_t) :: status
    type(c_ptr) :: made
    call self%release()
    if (present(halo)) then
      widths(:, :size(halo, 2)) = halo(:2, :)
      options%halo = c_loc(widths)
      options%ndim = size(halo, 2)
    end if
    bounds = 1
    status = c_wrap_{name}(array, options, made, bounds, own_text)
    call self%adopt(status, made, bounds, kind, stat)
  end subroutine wrap_{name}
"""


def main() -> None:
    source, target = map(pathlib.Path, sys.argv[1:])
    text = source.read_text()
    for mark, template in {"@INTERFACES@": INTERFACE, "@PROCEDURES@": PROCEDURES}.items():
        text = text.replace(
            mark + "\n",
            "".join(
                template.format(name=name, type=type_) for name, type_ in KINDS.items()
            ).removeprefix("\n")
            + "\n",
        )
    target.write_text(text)


if __name__ == "__main__":
    main()
