import { expect, test } from "vitest";
import { syscallFilter } from "./syscall-filter.ts";

const allowed = 0x7fff_0000;
const refused = 0x0005_0000;

/** Runs a filter on one call, as the kernel does. */
function decide(program: Buffer, call: { arch: number; number: number; args?: readonly number[] }): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number, 0);
  data.writeUInt32LE(call.arch, 4);
  for (const [index, value] of (call.args ?? []).entries()) data.writeUInt32LE(value >>> 0, 16 + 8 * index);
  let accumulator = 0;
  for (let line = 0; line * 8 < program.length; line += 1) {
    const value = program.readUInt32LE(line * 8 + 4);
    const code = program.readUInt16LE(line * 8);
    if (code === 0x06) return value;
    if (code === 0x20) accumulator = data.readUInt32LE(value);
    else {
      const holds =
        code === 0x15
          ? accumulator === value
          : code === 0x35
            ? accumulator >= value
            : (accumulator & value) !== 0;
      line += program.readUInt8(line * 8 + (holds ? 2 : 3));
    }
  }
  throw new Error("The filter has no end.");
}

const processors = [
  {
    name: "x64",
    arch: 0xc000_003e,
    open: 257,
    clone: 56,
    unshare: 272,
    mount: 165,
    socket: 41,
    ioctl: 16,
    keyctl: 250,
  },
  {
    name: "arm64",
    arch: 0xc000_00b7,
    open: 56,
    clone: 220,
    unshare: 97,
    mount: 40,
    socket: 198,
    ioctl: 29,
    keyctl: 219,
  },
];

test.for(processors)(
  "on $name the filter refuses namespaces, mounts and hypervisor sockets, and allows ordinary calls",
  ({ name, arch, ...numbers }) => {
    const program = syscallFilter(name) ?? Buffer.alloc(0);
    const outcomeOf = (number: number, ...args: readonly number[]): number =>
      decide(program, { arch, number, args });
    // Open a file, start a thread or process, use TCP, read the size of a terminal.
    for (const [number, ...args] of [
      [numbers.open],
      [numbers.clone, 0x3d_0f00],
      [numbers.clone, 17],
      [numbers.socket, 2],
      [numbers.ioctl, 1, 0x5413],
      [numbers.unshare, 0x400],
    ] as const) {
      expect(outcomeOf(number, ...args)).toBe(allowed);
    }
    for (const [number, ...args] of [
      [numbers.mount],
      [numbers.keyctl],
      [numbers.clone, 0x1000_0011],
      [numbers.unshare, 0x1000_0000],
      [numbers.unshare, 0x2_0000],
      [numbers.socket, 40],
      [numbers.ioctl, 0, 0x5412],
      [425],
      [428],
    ] as const) {
      expect(outcomeOf(number, ...args)).toBe(refused | 1);
    }
    expect(outcomeOf(435)).toBe(refused | 38);
    expect(decide(program, { arch: 0x4000_0003, number: 5 })).toBe(refused | 38);
    if (name === "x64") expect(outcomeOf(0x4000_0000 + numbers.open)).toBe(refused | 38);
  },
);

test("an unsupported processor has no filter", () => {
  expect(syscallFilter("s390x")).toBeUndefined();
});
