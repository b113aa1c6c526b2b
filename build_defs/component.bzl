"""`write_component`: what a repository puts into a wheel, for the wheel's bill of materials (SBOM) and its licences.

A repository rule calls it where it finds the sources, so that a version is never written twice. The target `//component` of that
repository then has `NAME/component.json` and the texts of the licence; `python_wheel` takes it as one of its `components`.
"""

_BUILD = 'filegroup(name = "component", srcs = glob(["*/*"], allow_empty = True), visibility = ["//visibility:public"])\n'

def no_component(repository_ctx, package = "component"):
    """Makes an empty `//component`: the repository puts nothing into a wheel."""
    repository_ctx.file(package + "/BUILD.bazel", _BUILD)

def write_component(repository_ctx, name, version, licence, purl, texts, package = "component"):
    """Makes `//component` with this component, or adds it.

    Args:
      repository_ctx: the context of the repository rule.
      name: the component's name.
      version: its version.
      licence: an SPDX expression.
      purl: the package URL without the version, e.g. "pkg:pypi/pybind11". A part behind "?" is its qualifiers.
      texts: paths of the texts of the licence. Those that do not exist are left out; //tools:wheels_test misses them.
      package: another name for `//component`.
    """
    no_component(repository_ctx, package)
    base, _, qualifiers = purl.partition("?")
    purl = "%s@%s%s" % (base, version.replace("+", "%2B"), "?" + qualifiers if qualifiers else "")
    about = struct(name = name, version = version, licence = licence, purl = purl)
    folder = "%s/%s-%s/" % (package, name, version)
    repository_ctx.file(folder + "component.json", json.encode(about) + "\n")
    for text in [repository_ctx.path(text) for text in texts]:
        if text.exists:
            repository_ctx.symlink(text.realpath, folder + text.basename)

def installed_component(repository_ctx, info, package = "component"):
    """`write_component` for an installed package of PyPI: `info` is the path of its `.dist-info` folder."""
    fields = dict([
        line.split(": ", 1)
        for line in repository_ctx.read(info.get_child("METADATA")).partition("\n\n")[0].split("\n")
        if line.split(": ")[0] in ["Name", "Version", "License-Expression"]
    ])
    write_component(
        repository_ctx,
        name = fields["Name"],
        version = fields["Version"],
        licence = fields["License-Expression"],
        purl = "pkg:pypi/" + fields["Name"],
        texts = info.get_child("licenses").readdir() if info.get_child("licenses").exists else [],
        package = package,
    )

_GCC = "GPL-3.0-or-later WITH GCC-exception-3.1"
_GLIBC = "LGPL-2.1-or-later WITH GCC-exception-2.0"

def runtime_components(repository_ctx, root, pinned):
    """`write_component` for the parts of GCC and glibc that every extension gets: libstdc++.a, libgcc, crt*.o, libc_nonshared.a.

    Args:
      repository_ctx: the context of the repository rule.
      root: the folder of Debian's packages, "" on this machine.
      pinned: the architecture of the old C library that extensions are linked with, "" without one.
    """
    if root:
        (version,) = [path.basename for path in repository_ctx.path(root + "/usr/lib/gcc/aarch64-linux-gnu").readdir()]
    else:
        found = repository_ctx.execute(["clang-19", "-print-file-name=libstdc++.a"]).stdout
        version = found.rpartition("/")[0].rpartition("/")[2]
    packages = {"libstdc++-%s-dev" % version: _GCC, "libc6-dev": _GLIBC}
    for package, licence in packages.items():
        command = ["dpkg-query", "-W", "-f", "${source:Package} (${source:Version})", package]
        if root:
            command = ["zcat", "%s/usr/share/doc/%s/changelog.Debian.gz" % (root, package)]
        source, _, rest = repository_ctx.execute(command).stdout.partition(" (")
        _write_debian(repository_ctx, root, source, rest.partition(")")[0], licence, package)
    if pinned:
        # The texts are those of the newer packages: the terms are the same.
        pins = repository_ctx.read(Label("//third_party:debian.pins")).split("\n")
        for (package, licence), pin in zip(packages.items(), ["libgcc-10-dev_", "libc6-dev_"]):
            (path,) = [line.split("/") for line in pins if "/" + pin in line and line.endswith("_%s.deb" % pinned)]
            _write_debian(repository_ctx, root, path[-2], path[-1].split("_")[1], licence, package)

def _write_debian(repository_ctx, root, source, version, licence, package):
    purl = "pkg:deb/debian/%s?arch=source" % source
    write_component(repository_ctx, source, version, licence, purl, ["%s/usr/share/doc/%s/copyright" % (root, package)])
