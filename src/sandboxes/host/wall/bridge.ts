/** Where a command finds its proxy, within the wall. */
export const bridgePort = 3128;

/**
 * Runs within the wall, before the command: listens on its loopback interface, hands what comes to the socket of
 * kit's proxy, and ends as the command ends. A text, as it is started where kit's own files are not seen.
 */
const script = `
const { connect, createServer } = require("node:net");
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const [socket, port, program, ...args] = process.argv.slice(1);
const bridge = createServer({ allowHalfOpen: true }, (client) => {
  const proxy = connect({ path: socket, allowHalfOpen: true });
  client.on("error", () => proxy.destroy()).pipe(proxy);
  proxy.on("error", () => client.destroy()).pipe(client);
});
bridge.listen(Number(port), "127.0.0.1", () => {
  process.on("SIGTERM", () => {});
  const child = spawn(program, args, { stdio: "inherit" });
  child.on("error", (error) => {
    process.stderr.write(program + ": " + (error.code === "EACCES" ? "permission denied" : "command not found") + "\\n");
    process.exit(error.code === "EACCES" ? 126 : 127);
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
});
`;

/** Words before a command that give it the way to the proxy. */
export function bridgeArguments(socket: string): readonly string[] {
  return [process.execPath, "-e", script, "--", socket, String(bridgePort)];
}
