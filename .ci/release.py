"""Packs built functions into a folder that SAM deploys without Rust: a zip of each, the template, and the digests."""

import concurrent.futures
import hashlib
import os
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path

from samcli.yamlhelper import yaml_dump, yaml_parse

ROOT = Path(__file__).resolve().parent.parent
# An operator gets these files with the functions. AWS shows UPGRADING.md as the application's page, with its licence.
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE")
FILES = ("docs/UPGRADING.md", *LICENCES, "CHANGELOG.md", "openapi.json", "docs/sbom.cdx.json", "samconfig.toml")


def version() -> str:
    """The version of the workspace."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def folder() -> Path:
    """The folder of the release."""
    return ROOT / "target" / f"release-{version()}"


def pack(binary: Path, archive: Path) -> None:
    """Makes the zip of a function. Its bytes depend on those of the binary only, and not on a date or an owner."""
    entry = zipfile.ZipInfo("bootstrap")
    entry.create_system, entry.external_attr, entry.compress_type = 3, 0o100755 << 16, zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(entry, binary.read_bytes(), compresslevel=6)


def template(build: Path, architecture: str) -> str:
    """The built template. Its functions are the zips, and its only processor is the one that they are built for."""
    parsed = yaml_parse((build / "template.yaml").read_text())
    for name, resource in parsed["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = f"functions/{name}.zip"
            resource.pop("Metadata", None)
    parsed["Parameters"]["Architecture"] |= {"Default": architecture, "AllowedValues": [architecture]}
    application = {"Name": "conversational-assistants", "Description": parsed["Description"], "Author": "maintainers"}
    application |= {"SemanticVersion": version(), "SpdxLicenseId": "MIT", "LicenseUrl": "LICENSE-MIT"}
    application |= {"ReadmeUrl": "UPGRADING.md", "Labels": ["assistants", "chat", "campaigns", "webhooks", "rust"]}
    parsed["Metadata"] = {"AWS::ServerlessRepo::Application": application}
    return yaml_dump(parsed)


def main(build: Path, architecture: str) -> None:
    """Makes the folder anew."""
    release = folder()
    shutil.rmtree(release, ignore_errors=True)
    (release / "functions").mkdir(parents=True)
    binaries = sorted(build.glob("*/bootstrap"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        archives = [release / "functions" / f"{binary.parent.name}.zip" for binary in binaries]
        list(pool.map(pack, binaries, archives))
    (release / "template.yaml").write_text(template(build, architecture))
    for name in FILES:
        shutil.copyfile(ROOT / name, release / Path(name).name)
    files = sorted(path for path in release.rglob("*") if path.is_file())
    digests = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(release)}\n" for path in files]
    (release / "SHA256SUMS").write_text("".join(digests))
    size = sum(path.stat().st_size for path in files)
    print(f"{release.relative_to(ROOT)}: {len(archives)} functions for {architecture}, {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
