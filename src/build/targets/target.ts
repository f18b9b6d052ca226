import type { Application } from "../application.ts";
import type { BuildProblem, OutputFiles } from "../bundler.ts";

/** A file that belongs to the project once it is written: people edit it, and kit does not write over that. */
export interface TargetFile {
  /** Relative to the output's folder, or to the project's root where the target says so. */
  readonly path: string;
  readonly content: string;
}

/** One call of a platform's own command line. */
export interface DeploymentStep {
  readonly args: readonly string[];
  readonly cwd?: string | undefined;
  /** The variable whose value the command reads from its input. */
  readonly input?: string | undefined;
}

/** The way of a built application to its platform, by the platform's own command line. */
export interface Deployment {
  /** Names of the program; the first that is on PATH is called. */
  readonly tools: readonly [string, ...string[]];
  /** A sentence that says how to get it. */
  readonly install: string;
  /** Arguments of a call that succeeds where the user is signed in, and sends nothing. */
  readonly check: readonly string[];
  /** A line that signs in. */
  readonly signIn: string;
  /** Variables that must be set here. */
  readonly required: readonly string[];
  readonly steps: readonly DeploymentStep[];
  /**
   * Where the server then answers, the arguments of a call that prints it, or how the steps have printed it: the first pattern that
   * matches; undefined where nothing answers.
   */
  readonly address?: string | readonly string[] | { readonly printed: readonly RegExp[] } | undefined;
  /** How long `/health` may take to answer, in ms; default two minutes. */
  readonly healthMs?: number | undefined;
  /** Sentences for the end. */
  readonly remarks: readonly string[];
}

export interface DeploymentContext {
  /** Absolute: the output's folder. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** An application as a platform takes it. */
export interface TargetBundle {
  readonly files: OutputFiles;
  /** Problems that only the finished bundle shows. */
  readonly problems?: readonly BuildProblem[] | undefined;
  readonly warnings?: readonly string[] | undefined;
  /** A sentence about its size, and the limits of the platform. */
  readonly size?: string | undefined;
}

/** Somewhere to run an application. */
export interface Target {
  readonly name: string;
  readonly summary: string;
  /** Where the application lies in the output; undefined for a target that takes the repository itself. */
  readonly application: string | undefined;
  /** Whether the files lie in the output's folder or in the root of the project, where the platform looks for them. */
  readonly placement: "output" | "root";
  /** Parts of the project that the target cannot hold. */
  problems(app: Application): readonly BuildProblem[];
  /** Differences between the target and this machine, with figures. */
  warnings(app: Application): readonly string[];
  files(app: Application): readonly TargetFile[];
  /** The files of the application as the platform wants them; default: those of `app`. */
  bundle?(app: Application): Promise<TargetBundle>;
  /** Variables that the platform needs beside those of the application. */
  readonly variables?: readonly string[] | undefined;
  /** Commands that run the output: whole lines, remarks begin with #. `folder` is a word of a shell. */
  next(app: Application, folder: string): readonly string[];
  /** Absent for a target that kit sends nothing to. */
  deployment?(app: Application, context: DeploymentContext): Deployment;
}
