import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Debian's libfaketime: sets the time of day of a process, while its timers continue. */
export const clockLibrary: string | undefined = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
  .map((architecture) => `/usr/lib/${architecture}/faketime`)
  .filter((folder) => existsSync(folder))
  .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
  .find((file) => file.endsWith("libfaketimeMT.so.1"));

/** The environment of a process whose clock `setClock` of the same folder sets; empty without the library. */
export function clockEnvironment(folder: string): Readonly<Record<string, string>> {
  if (clockLibrary === undefined) return {};
  return {
    LD_PRELOAD: clockLibrary,
    FAKETIME_TIMESTAMP_FILE: join(folder, "clock"),
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
}

/** Sets the clock so many hours before or after the true time. */
export function setClock(folder: string, hours: number): void {
  writeFileSync(join(folder, "clock"), `${hours >= 0 ? "+" : ""}${hours}h\n`);
}
