import { spawn } from "node:child_process";
import { once } from "node:events";
import { link, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { virtual } from "../../virtual/virtual-sandbox.ts";
import { createFolder, openWalled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const secret = "kit-host-secret";

wallTest("commands see no files of the machine except programs, by any path", async () => {
  await writeFile(join(folder, "id_rsa"), secret);
  const { root, run } = await openWalled(folder);
  await mkdir(join(root, ".kit"), { recursive: true });
  await writeFile(join(root, ".kit/sessions.db"), secret);
  await symlink(join(folder, "id_rsa"), join(root, "linked"));
  await symlink("/etc", join(root, "etc"));
  const reads = [
    `cat ${folder}/id_rsa linked /proc/1/root${folder}/id_rsa /proc/self/root/../..${folder}/id_rsa`,
    "cat /etc/shadow etc/shadow /etc/sudoers; ls /root ~root /home/* /var/lib /var/run /run/user /run/dbus",
    "cat .kit/sessions.db; ls -A .kit; find / -name sessions.db -not -path '/proc/*'",
    "ls /sys /boot /mnt /media /srv; cat /proc/kcore | head -c 1; cat /proc/kmsg | head -c 1",
  ];
  const { stdout } = await run(reads.join("\n"));
  // In a checkout below a home folder, the folders on the way to Node are there, and nothing beside them.
  const onTheWay = new Set(process.execPath.split("/"));
  const seen = stdout.replace(/^\/root:|^\/home\/[^/]+:|^~root:|\/run.*/gm, "").split("\n");
  expect(seen.filter((name) => name !== "" && !onTheWay.has(name))).toEqual([]);
});

wallTest("commands neither see nor reach kit's environment and processes", async () => {
  process.env.KIT_WALL_TEST = secret;
  const other = spawn("sleep", ["60"]);
  afterAll(() => other.kill());
  try {
    const { run } = await openWalled(folder);
    const { stdout } = await run(
      `env; cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/${process.pid}/environ /proc/${process.ppid}/environ
      kill -9 ${process.pid} ${other.pid}; kill -0 ${other.pid} && echo reached
      ls /proc | grep -c '^[0-9]'`,
    );
    expect(stdout).not.toContain(secret);
    expect(stdout).not.toContain("reached");
    expect(Number(stdout.trim().split("\n").at(-1))).toBeLessThan(10);
    expect(other.exitCode ?? other.signalCode).toBe(null);
  } finally {
    delete process.env.KIT_WALL_TEST;
  }
});

wallTest("descriptors that kit was started with do not reach a command", async () => {
  await writeFile(join(folder, "open.txt"), secret);
  const { root } = await openWalled(folder);
  const script = `
    const { local } = await import(${JSON.stringify(join(import.meta.dirname, "../../local/local-sandbox.ts"))});
    for (const isolation of ["auto", "off"]) {
      const sandbox = await local({ root: ${JSON.stringify(root)}, isolation }).open({ agent: "a", instance_id: "1", session: "s" });
      console.log((await sandbox.exec({ command: "cat <&7; cat /proc/self/fd/7" })).stdout);
      await sandbox.close();
    }`;
  const child = spawn("/bin/sh", [
    "-c",
    `exec 7<"$1"; exec "$2" --input-type=module -e "$3"`,
    "sh",
    join(folder, "open.txt"),
    process.execPath,
    script,
  ]);
  let printed = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (part) => {
      printed += part;
    });
  await once(child, "close");
  expect(printed.trim()).toBe("");
});

wallTest("commands reach no socket of the machine: by port, by path or by an abstract name", async () => {
  const received: string[] = [];
  const listen = async (at: string | 0): Promise<number> => {
    const server = createServer((socket) => {
      received.push(String(at));
      socket.end("hello");
    });
    if (at === 0) server.listen(0, "127.0.0.1");
    else server.listen(at);
    await once(server, "listening");
    afterAll(() => void server.close());
    const address = server.address();
    return address !== null && typeof address === "object" ? address.port : 0;
  };
  const port = await listen(0);
  await listen(join(folder, "host.sock"));
  await listen(`\0kit-wall-test-${process.pid}`);
  const { run } = await openWalled(folder);
  const script = `
    const { connect } = require("node:net");
    const tries = [{ port: ${port}, host: "127.0.0.1" }, { path: ${JSON.stringify(join(folder, "host.sock"))} }, { path: "\\0kit-wall-test-${process.pid}" }, { port: 80, host: "169.254.169.254" }, { port: 53, host: "1.1.1.1" }];
    for (const at of tries) connect(at).on("connect", () => console.log("reached", at)).on("error", (error) => console.log(error.code));`;
  const { stdout } = await run(`"${process.execPath}" -e '${script.replaceAll("'", `'\\''`)}'`);
  expect(stdout.trim().split("\n")).toHaveLength(5);
  expect(stdout).not.toContain("reached");
  expect(received).toEqual([]);
});

wallTest("commands see neither another workspace nor its home folder", async () => {
  const all = join(folder, "all");
  const owner = { agent: "tester", session: "default" };
  const sandbox = await virtual({ folder: all }).open({ ...owner, instance_id: "1" });
  const other = await virtual({ folder: all }).open({ ...owner, instance_id: "2" });
  await sandbox.exec({
    command: `echo ${secret} > mine.txt; echo ${secret} > ~/mine.txt; echo ${secret} > /tmp/mine.txt`,
  });
  const { stdout } = await other.exec({
    command: `cat "${all}"/*/mine.txt ~/mine.txt /tmp/mine.txt; ls "${all}"`,
  });
  expect(stdout).not.toContain(secret);
  expect(stdout.trim().split("\n")).toHaveLength(1);
  expect((await sandbox.exec({ command: "cat ~/mine.txt" })).stdout).toBe(`${secret}\n`);
});

wallTest(
  "commands have no privileges and can gain none: users, mounts, devices, kernel settings, tracing",
  async () => {
    const { run } = await openWalled(folder);
    const { stdout, stderr } = await run(
      `grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status | tr -s '\\t\\n' ' '; echo
    unshare -r true && echo escaped; unshare -m true && echo escaped; unshare -n true && echo escaped
    mount -t tmpfs none /tmp && echo escaped; mount -o remount,rw / && echo escaped; umount /proc && echo escaped
    mknod /tmp/sda b 8 0 && echo escaped; chroot / true && echo escaped; nsenter -t 1 -m true && echo escaped
    cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo escaped
    echo 1000 > /proc/self/oom_score_adj && echo escaped; test -w /proc/sysrq-trigger && echo escaped
    touch /usr/kit /etc/kit /dev/kit /proc/kit /kit /run/kit /var/kit /bin/kit && echo escaped
    cp /bin/sh /tmp/sh; chmod 4755 /tmp/sh; su -c true nobody && echo escaped
    ls /dev`,
      { access: { write: true } },
    );
    expect(stdout).toMatch(/^CapEff: 0+ CapBnd: 0+ NoNewPrivs: 1/);
    expect(stdout + stderr).not.toContain("escaped\n");
    expect(stdout).not.toMatch(/^(sd|vd|nvme|loop|kmsg|mem|kvm|fuse)/m);
  },
);

wallTest("commands cannot create a hard link to a read-only file or to a system file", async () => {
  const { root, run, sandbox } = await openWalled(folder);
  await writeFile(join(root, "package.json"), "{}");
  await link(join(folder, "id_rsa"), join(root, "other-name")).catch(() => undefined);
  const { stdout } = await run(
    "ln package.json other.json && echo linked; ln /usr/bin/env env && echo linked; echo x >> package.json",
    {
      access: { write: true, readOnlyPaths: ["package.json", "missing.json"] },
    },
  );
  expect(stdout).toBe("");
  expect(await readFile(join(root, "package.json"), "utf8")).toBe("{}");
  expect(await sandbox.exists("missing.json")).toBe(false);
});
