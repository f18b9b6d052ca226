import { Writable } from "node:stream";

/**
 * Takes stdout for a protocol: what the code of a project or of a package prints there, such as with `console.log`, goes to stderr
 * until disposal.
 */
export function takeStdout(): Disposable & { readonly writable: Writable } {
  const { stdout, stderr } = process;
  const { write } = stdout;
  const print = write.bind(stdout);
  stdout.write = stderr.write.bind(stderr) as typeof write;
  const output = new Writable({
    write: (chunk: Uint8Array, _encoding, done) => void print(chunk, (error) => done(error ?? null)),
  });
  // An editor that leaves closes the pipe; the end of stdin ends the command.
  for (const stream of [stdout, output]) stream.on("error", () => undefined);
  return {
    writable: output,
    [Symbol.dispose]() {
      stdout.write = write;
    },
  };
}
