/**
 * Packs the extension for VS Code: `npm run vscode` writes `editors/vscode/dist/kit.vsix`. The package of VS Code's own tool has 300 others;
 * a package is a zip file with a manifest.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32, deflateRawSync } from "node:zlib";
import { rolldown } from "rolldown";
import { repositoryRoot } from "../files.ts";

const folder = join(repositoryRoot, "editors/vscode");
const read = (name: string): Buffer => readFileSync(join(folder, name));
const dist = join(folder, "dist");
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
const bundle = await rolldown({
  input: join(folder, "extension.js"),
  platform: "node",
  external: ["vscode"],
});
await bundle.write({ file: join(dist, "extension.cjs"), format: "cjs", minify: true });
await bundle.close();

const manifest = JSON.parse(read("package.json").toString());
// The bundle has the dependencies.
const { dependencies: _, private: __, ...shipped } = manifest;
const { name, publisher, version, displayName, description, engines, categories } = shipped;
const escaped = (text: string): string =>
  text.replace(/[<>&"]/g, (character) => `&#${character.charCodeAt(0)};`);
const vsixManifest = `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="${name}" Version="${version}" Publisher="${publisher}"/>
    <DisplayName>${escaped(displayName)}</DisplayName>
    <Description xml:space="preserve">${escaped(description)}</Description>
    <Categories>${escaped(categories.join(","))}</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="${engines.vscode}"/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace"/>
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
  </Assets>
</PackageManifest>
`;
const types = ["json", "cjs", "md", "vsixmanifest"].map(
  (ending) => `<Default Extension=".${ending}" ContentType="application/octet-stream"/>`,
);
const contentTypes = `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">${types.join("")}</Types>
`;
writeFileSync(
  join(dist, "kit.vsix"),
  zip({
    "extension.vsixmanifest": Buffer.from(vsixManifest),
    "[Content_Types].xml": Buffer.from(contentTypes),
    "extension/package.json": Buffer.from(JSON.stringify(shipped, null, 2)),
    "extension/README.md": read("README.md"),
    "extension/LICENSE.md": readFileSync(join(repositoryRoot, "LICENSE")),
    "extension/dist/extension.cjs": readFileSync(join(dist, "extension.cjs")),
  }),
);
console.log("editors/vscode/dist/kit.vsix");

/** A zip file without dates: the same files give the same bytes. */
function zip(files: Readonly<Record<string, Buffer>>): Buffer {
  const parts: Buffer[] = [];
  const entries: Buffer[] = [];
  let offset = 0;
  for (const [path, content] of Object.entries(files)) {
    const data = deflateRawSync(content);
    const fields = Buffer.alloc(26);
    // Version 2.0, names in UTF-8, deflated, 1 January 1980.
    for (const [at, value] of [
      [0, 20],
      [2, 0x800],
      [4, 8],
      [8, 0x21],
      [22, Buffer.byteLength(path)],
    ] as const)
      fields.writeUInt16LE(value, at);
    for (const [at, value] of [
      [10, crc32(content)],
      [14, data.length],
      [18, content.length],
    ] as const)
      fields.writeUInt32LE(value, at);
    const header = Buffer.concat([Buffer.from("PK\x03\x04"), fields, Buffer.from(path), data]);
    const placed = Buffer.alloc(14);
    placed.writeUInt32LE(offset, 10);
    entries.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\0"), fields, placed, Buffer.from(path)]));
    parts.push(header);
    offset += header.length;
  }
  const directory = Buffer.concat(entries);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06");
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, directory, end]);
}
