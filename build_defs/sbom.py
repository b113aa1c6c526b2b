"""The bill of materials of a wheel (PEP 770), as CycloneDX 1.6: what its extension has in it besides the package's sources."""

import json
import pathlib
import uuid

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from pyproject_metadata import StandardMetadata


def _component(about: dict[str, str], kind: ComponentType) -> Component:
    return Component(
        name=about["name"],
        version=about["version"],
        type=kind,
        licenses=[LicenseFactory().make_from_string(about["licence"])],
        purl=PackageURL.from_string(about["purl"]),
        bom_ref=about["purl"],
    )


def bill_of_materials(project: StandardMetadata, components: list[pathlib.Path]) -> str:
    """The text of an SBOM. The same inputs give the same bytes: it has no time, and its number is made from its content.

    Args:
        project: The metadata of the wheel.
        components: The `component.json` files that write_component (component.bzl) made.
    """
    version = str(project.version)
    purl = f"pkg:pypi/{project.canonical_name}@{version}"
    about = {"name": project.name, "version": version, "licence": project.license, "purl": purl}
    wheel = _component(about, ComponentType.LIBRARY)
    inside = [
        _component(json.loads(path.read_text()), ComponentType.LIBRARY) for path in components
    ]
    digest = json.dumps([about, *(path.read_text() for path in sorted(components))])
    bom = Bom(components=inside, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, digest))
    bom.metadata.timestamp = None
    bom.metadata.component = wheel
    bom.register_dependency(wheel, inside)
    text = json.loads(JsonV1Dot6(bom).output_as_string())
    # The library puts the time of the call in.
    text["metadata"].pop("timestamp", None)
    return json.dumps(text, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
