import { invalid } from "../../files/file-error.ts";
import { readRegularFile } from "../../files/read-regular-file.ts";
import { replaceFile } from "../../files/replace-file.ts";
import { replaceText, type TextChange } from "./replace-text.ts";
import { notFound, withPlace } from "./with-place.ts";
import type { View } from "./workspace.ts";

/** Writes a whole file; folders above it are created. */
export async function writeFile(view: View, path: string, content: string | Uint8Array): Promise<void> {
  if (path === "" || path.endsWith("/")) throw invalid("A path to write names a file.");
  await withPlace(view, path, {
    createFolders: true,
    work: (place) => replaceFile(place, { content }),
  });
}

/** Creates a folder with those above it; one that is there already is fine. */
export async function makeFolder(view: View, path: string): Promise<void> {
  await withPlace(view, path, { createFolders: true, end: "folder", work: async () => undefined });
}

/** Replaces a text in a file of UTF-8; `conflict` when the file changes meanwhile. */
export function editFile(
  view: View,
  path: string,
  { change, maxBytes }: { readonly change: TextChange; readonly maxBytes: number },
): Promise<{ readonly replacements: number }> {
  return withPlace(view, path, {
    async work(place) {
      const bytes = await readRegularFile(place, maxBytes);
      if (bytes === undefined) throw notFound(place.path);
      const { text, replacements } = replaceText(bytes, change, place.path);
      await replaceFile(place, { content: text, expected: bytes });
      return { replacements };
    },
  });
}
