const shells: ReadonlySet<string> = new Set(
  "sh bash dash zsh ksh fish ash csh tcsh rbash rzsh rksh mksh yash sash pwsh powershell busybox toybox".split(
    " ",
  ),
);

/** Programs that hand text to a shell, whatever their options. */
const scripting: ReadonlySet<string> = new Set(
  "watch script su runuser sg parallel expect screen tmux at batch crontab ssh entr xterm".split(" "),
);

/** Programs that run the command which their arguments are, or have in them. */
const launchers: ReadonlySet<string> = new Set(
  "env nice nohup timeout time stdbuf setsid ionice chrt taskset prlimit setpriv setarch linux32 linux64 numactl xargs sudo doas chroot unshare nsenter flock strace ltrace perf valgrind gdb npx pnpx bunx find fd fdfind eatmydata fakeroot proot rlwrap unbuffer logsave systemd-run start-stop-daemon daemonize run-parts caffeinate arch".split(
    " ",
  ),
);

/**
 * The shell, or the program that hands text to one, by which a simple command is a script: as the program
 * itself, under any name of a shell, or behind a launcher. Undefined when there is none.
 */
export function shellIn(words: readonly string[]): string | undefined {
  const [program = "", ...args] = words;
  if (isShell(program)) return program;
  if (!launchers.has(baseName(program))) return undefined;
  // What find looks for is no program; what it runs on it is.
  if (/^(find|fd|fdfind)$/.test(baseName(program))) {
    const runs = args.flatMap((word, index) => {
      const joined = /^(-[xX]|--exec=|--exec-batch=)(.+)$/.exec(word)?.[2];
      return (
        joined ??
        (/^(-exec|-execdir|-ok|-okdir|-x|-X|--exec|--exec-batch)$/.test(word) ? (args[index + 1] ?? []) : [])
      );
    });
    const shell = runs.find(isShell);
    return shell ?? (runs.some((word) => launchers.has(baseName(word))) ? args.find(isShell) : undefined);
  }
  for (const word of args) {
    // `env -S 'bash -c x'`: a text that is split.
    const shell = word.split(/[\s=]+/).find((part) => isShell(part.replace(/^-[A-Za-z]*S/, "")));
    if (shell !== undefined) return shell;
    // `flock file -c 'x'`, `npx -c 'x'`: a text for a shell.
    if (/^(-[a-z]*c|--command|--call)(=|$)/.test(word) && /^(flock|npx)$/.test(baseName(program)))
      return program;
  }
  return undefined;
}

function isShell(word: string): boolean {
  const name = baseName(word).replace(/\.exe$/i, "");
  return shells.has(name) || scripting.has(name) || shells.has(name.replace(/-?\d+(\.\d+)*$/, ""));
}

function baseName(program: string): string {
  return program.slice(program.lastIndexOf("/") + 1);
}
