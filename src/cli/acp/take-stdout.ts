import { Writable } from "node:stream";

/**
 * Takes stdout for a protocol: what the code of a project or of a package prints there, such as with `console.log`, goes to stderr
 * from now on. Disposal gives it back.
 */
export function takeStdout(): Disposable & { readonly writable: WritableStream<Uint8Array> } {
  const { stdout, stderr } = process;
  const { write } = stdout;
  const print = write.bind(stdout);
  stdout.write = stderr.write.bind(stderr) as typeof write;
  const output = new Writable({
    write(chunk: Uint8Array, _encoding, done) {
      print(chunk, (error) => done(error ?? null));
    },
  });
  // An editor that leaves closes the pipe; the end of stdin ends the command.
  stdout.on("error", ignore);
  output.on("error", ignore);
  return {
    writable: Writable.toWeb(output) as WritableStream<Uint8Array>,
    [Symbol.dispose]() {
      stdout.write = write;
      stdout.off("error", ignore);
    },
  };
}

function ignore(): void {
  // Nothing reads it any more.
}
