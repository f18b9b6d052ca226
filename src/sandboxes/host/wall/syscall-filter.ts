/**
 * A seccomp program that refuses system calls which no build, test or script needs and which kernel exploits have
 * used: new namespaces and mounts, kernel keyrings, BPF, io_uring, sockets to a hypervisor (a network namespace
 * does not close them), and typing into a terminal. Returns `undefined` for an unsupported processor.
 */
export function syscallFilter(processor: string): Buffer | undefined {
  const machine = machines[processor];
  if (machine === undefined) return undefined;
  const { audit, numbers } = machine;
  const refused = [
    "mount",
    "umount2",
    "pivot_root",
    "setns",
    "add_key",
    "request_key",
    "keyctl",
    "bpf",
    "perf",
    "userfaultfd",
    "open_by_handle",
  ] as const;
  const lines: Instruction[] = [
    load(offsets.architecture),
    ...unless(audit, errno(ENOSYS)),
    load(offsets.number),
    // Call numbers of the x32 ABI, which mean other calls.
    ...(processor === "x64" ? [[BPF_JMP_JGE, 0, 1, 0x4000_0000] as const, errno(ENOSYS)] : []),
    ...when(clone3, [errno(ENOSYS)]),
    ...refused.flatMap((name) => when(numbers[name], [errno(EPERM)])),
    ...newerCalls.flatMap((number) => when(number, [errno(EPERM)])),
    ...[numbers.unshare, numbers.clone].flatMap((number) =>
      when(number, [load(offsets.argument(0)), [BPF_JMP_JSET, 0, 1, newNamespaces], errno(EPERM), allow]),
    ),
    ...when(numbers.socket, [load(offsets.argument(0)), ...when(AF_VSOCK, [errno(EPERM)]), allow]),
    ...when(numbers.ioctl, [
      load(offsets.argument(1)),
      ...when(TIOCSTI, [errno(EPERM)]),
      ...when(TIOCLINUX, [errno(EPERM)]),
      allow,
    ]),
    allow,
  ];
  const bytes = Buffer.alloc(lines.length * 8);
  for (const [index, [code, yes, no, value]] of lines.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(yes, index * 8 + 2);
    bytes.writeUInt8(no, index * 8 + 3);
    bytes.writeUInt32LE(value, index * 8 + 4);
  }
  return bytes;
}

/** Operation, instructions to skip if its condition holds, instructions to skip if not, and operand. */
type Instruction = readonly [code: number, yes: number, no: number, value: number];

const BPF_LD_W_ABS = 0x20;
const BPF_JMP_JEQ = 0x15;
const BPF_JMP_JGE = 0x35;
const BPF_JMP_JSET = 0x45;
const BPF_RET = 0x06;
const EPERM = 1;
const ENOSYS = 38;
const AF_VSOCK = 40;
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
/** CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const newNamespaces = 0x7e02_0080;
/** A filter cannot read the flags of `clone3`, which are in memory. Refused, libraries fall back to `clone`. */
const clone3 = 435;
/** The same numbers on all processors: open_tree to fspick, mount_setattr, open_tree_attr, io_uring. */
const newerCalls = [428, 429, 430, 431, 432, 433, 442, 467, 425, 426, 427];

const machines: Readonly<
  Record<string, { readonly audit: number; readonly numbers: Readonly<Record<CallName, number>> }>
> = {
  x64: {
    audit: 0xc000_003e,
    numbers: {
      mount: 165,
      umount2: 166,
      pivot_root: 155,
      setns: 308,
      unshare: 272,
      clone: 56,
      add_key: 248,
      request_key: 249,
      keyctl: 250,
      bpf: 321,
      perf: 298,
      userfaultfd: 323,
      open_by_handle: 304,
      socket: 41,
      ioctl: 16,
    },
  },
  arm64: {
    audit: 0xc000_00b7,
    numbers: {
      mount: 40,
      umount2: 39,
      pivot_root: 41,
      setns: 268,
      unshare: 97,
      clone: 220,
      add_key: 217,
      request_key: 218,
      keyctl: 219,
      bpf: 280,
      perf: 241,
      userfaultfd: 282,
      open_by_handle: 265,
      socket: 198,
      ioctl: 29,
    },
  },
};

type CallName =
  | "mount"
  | "umount2"
  | "pivot_root"
  | "setns"
  | "unshare"
  | "clone"
  | "add_key"
  | "request_key"
  | "keyctl"
  | "bpf"
  | "perf"
  | "userfaultfd"
  | "open_by_handle"
  | "socket"
  | "ioctl";

/** Byte offsets in `struct seccomp_data`; for an argument, of its lower half. */
const offsets = { number: 0, architecture: 4, argument: (index: number): number => 16 + 8 * index } as const;

const allow: Instruction = [BPF_RET, 0, 0, 0x7fff_0000];
const errno = (code: number): Instruction => [BPF_RET, 0, 0, 0x0005_0000 | code];
const load = (offset: number): Instruction => [BPF_LD_W_ABS, 0, 0, offset];
const when = (value: number, lines: readonly Instruction[]): readonly Instruction[] => [
  [BPF_JMP_JEQ, 0, lines.length, value],
  ...lines,
];
const unless = (value: number, line: Instruction): readonly Instruction[] => [
  [BPF_JMP_JEQ, 1, 0, value],
  line,
];
