import { filePrograms, textPrograms } from "./file-programs.ts";
import { type Form, form } from "./form.ts";
import { git } from "./git-form.ts";
import { npmForm, otherPrograms, searchPrograms, versionForm } from "./other-programs.ts";
import { sed } from "./sed.ts";

const knownForms: ReadonlyMap<string, Form> = new Map(
  Object.entries({ ...textPrograms, ...filePrograms, ...searchPrograms, ...otherPrograms, git, sed }),
);

/** The form of a known program, by its name or absolute path; `undefined` for an unknown program. */
export function knownProgram(program: string): Form | undefined {
  return knownForms.get(nameOf(program)) ?? interpreterForm(program);
}

function interpreterForm(program: string): Form | undefined {
  const interpreter = interpreterOf(program);
  if (interpreter === undefined) return undefined;
  return interpreter === "npm" ? npmForm : versionForm;
}

/** The file name of a bare name or an absolute path; "" for a relative path: kit knows no programs of the workspace. */
function nameOf(program: string): string {
  const at = program.lastIndexOf("/");
  return at === -1 ? program : program.startsWith("/") ? program.slice(at + 1) : "";
}

// Programs that run code from their arguments, from files or from a person: none of their forms is known.
const interpreters: ReadonlySet<string> = new Set(
  (
    "awk gawk mawk nawk original-awk m4 bc dc make gmake bmake ninja cmake ctest just task rake gradle mvn ant bazel buck meson scons " +
    "npm npx yarn yarnpkg pnpm pnpx bun bunx corepack node nodejs deno tsx ts-node python python2 python3 pypy pypy3 pip pip3 pipx uv uvx poetry perl ruby irb gem bundle bundler php composer lua luajit tclsh wish expect R Rscript julia ghci runghc jshell groovy scala elixir erl swift osascript guile racket sbcl octave " +
    "go cargo rustc gcc g++ cc c++ clang clang++ tcc as ld javac java kotlin kotlinc dotnet " +
    "sh bash dash zsh ksh fish ash csh tcsh rbash rzsh rksh mksh yash pwsh powershell busybox toybox sash " +
    "xargs parallel watch script scriptreplay flock setsid chroot unshare nsenter sudo su doas runuser sg newgrp pkexec strace ltrace gdb lldb perf valgrind entr nohup ionice chrt taskset prlimit setpriv setarch linux32 linux64 numactl cpulimit softlimit start-stop-daemon time eatmydata fakeroot proot daemonize dbus-run-session systemd-run at batch crontab run-parts run-mailcap cpio capsh choom rlwrap unbuffer logsave ld.so " +
    "ssh scp sftp rsync telnet nc ncat netcat socat ftp tftp openssl gpg docker podman kubectl helm terraform ansible vagrant tmux screen tig gh hub svn hg bzr cvs " +
    "vi vim nvim view rvim ex ed red emacs nano pico less more most man info pg zless sqlite3 psql mysql redis-cli mongosh " +
    "dd split csplit patch install shred truncate mkfifo mknod mount zip unzip 7z gzip gunzip zcat bzip2 xz zstd ar jrunscript dpkg rpm apt apt-get yum dnf apk brew wget tcpdump nmap wireshark whiptail dialog pdflatex tex latex zsoelim groff troff nroff eqn soelim ghostscript gs convert magick ffmpeg cobc gimp snap puppet facter ansible-playbook tshark busctl systemctl journalctl"
  ).split(" "),
);

/** The name of an interpreter without its version number; `undefined` for other programs. */
export function interpreterOf(program: string): string | undefined {
  const name = program.slice(program.lastIndexOf("/") + 1);
  if (interpreters.has(name)) return name;
  const plain = name.replace(/-?\d+(\.\d+)*$/, "");
  return interpreters.has(plain) ? plain : undefined;
}

/** Launchers: programs that run the command after their own options. */
const launcherForms: ReadonlyMap<
  string,
  { readonly own: Form; readonly valued: ReadonlySet<string>; readonly operands: number }
> = new Map([
  [
    "timeout",
    {
      own: form({
        options:
          "-k=number -s=text -v --kill-after=number --signal=text --foreground --preserve-status --verbose",
        optionsFirst: true,
      }),
      valued: new Set(["-k", "-s", "--kill-after", "--signal"]),
      operands: 1,
    },
  ],
  [
    "nice",
    {
      own: form({ options: "-n=number --adjustment=number -#" }),
      valued: new Set(["-n", "--adjustment"]),
      operands: 0,
    },
  ],
  [
    "stdbuf",
    {
      own: form({ options: "-i=text -o=text -e=text --input=text --output=text --error=text" }),
      valued: new Set(["-i", "-o", "-e", "--input", "--output", "--error"]),
      operands: 0,
    },
  ],
  ["env", { own: form({}), valued: new Set<string>(), operands: 0 }],
]);

/**
 * The command that a known launcher runs (`git status` for `timeout 5 git status`), or the reason if it is invalid;
 * `undefined` if the program is not a known launcher.
 */
export function launchedCommand(words: readonly string[]): readonly string[] | string | undefined {
  const [program = "", ...args] = words;
  const launcher = launcherForms.get(nameOf(program));
  if (launcher === undefined) return undefined;
  let at = 0;
  for (; args[at]?.startsWith("-") === true; at += 1) if (launcher.valued.has(args[at] ?? "")) at += 1;
  const fault = launcher.own([...args.slice(0, at)]);
  if (typeof fault === "string") return fault;
  // To env, it means an empty environment: Git would lose the settings that keep it from running programs.
  if (args.slice(0, at).includes("-")) return '"-" is not an option that kit knows';
  const launched = args.slice(at + launcher.operands);
  const limit = args[at];
  if (launcher.operands === 1 && !/^\d+(\.\d+)?[smhd]?$/.test(limit ?? ""))
    return `"${limit ?? ""}" is not a time limit`;
  const first = launched[0];
  if (first === undefined) return "it needs a command to run";
  return first.includes("=") ? `"${first}" sets a variable` : launched;
}

export function isLauncher(program: string): boolean {
  return launcherForms.has(nameOf(program));
}
