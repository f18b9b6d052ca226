import type { Application } from "../application.ts";
import type { BuildProblem } from "../bundler.ts";

/** A file that belongs to the project once it is written: people edit it, and kit does not write over that. */
export interface TargetFile {
  /** Relative to the output's folder, or to the project's root where the target says so. */
  readonly path: string;
  readonly content: string;
}

/** Somewhere to run an application. */
export interface Target {
  readonly name: string;
  readonly summary: string;
  /** Where the application lies in the output; undefined for a target that takes the repository itself. */
  readonly application: "" | "app" | undefined;
  /** Whether the files lie in the output's folder or in the root of the project, where the platform looks for them. */
  readonly placement: "output" | "root";
  /** Parts of the project that the target cannot hold. */
  problems(app: Application): readonly BuildProblem[];
  /** Differences between the target and this machine, with figures. */
  warnings(app: Application): readonly string[];
  files(app: Application): readonly TargetFile[];
  /** Commands that run the output: whole lines, remarks begin with #. `folder` is a word of a shell. */
  next(app: Application, folder: string): readonly string[];
}
