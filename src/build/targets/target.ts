import type { Application } from "../application.ts";
import type { BuildProblem, OutputFiles } from "../bundler.ts";

/** A file that belongs to the project once it is written: users edit it, and kit does not overwrite it. */
export interface TargetFile {
  /** Relative to the output's folder, or to the project's root where the target says so. */
  readonly path: string;
  readonly content: string;
}

/** One call of the platform's command line. */
export interface DeploymentStep {
  readonly args: readonly string[];
  readonly cwd?: string | undefined;
  /** The variable whose value the command reads from standard input. */
  readonly input?: string | undefined;
}

/** How the platform's own command line deploys a built application. */
export interface Deployment {
  /** Names of the program; the first one found in PATH is used. */
  readonly tools: readonly [string, ...string[]];
  /** How to install it, as a sentence. */
  readonly install: string;
  /** Arguments of a call that succeeds if the user is signed in, and that sends nothing. */
  readonly check: readonly string[];
  /** The command that signs in. */
  readonly signIn: string;
  /** Variables that must be set here. */
  readonly required: readonly string[];
  readonly steps: readonly DeploymentStep[];
  /**
   * How to find the server's address: the arguments of a call that prints it, or patterns for the output of the
   * steps, of which the first match counts; undefined if no server runs.
   */
  readonly address?: string | readonly string[] | { readonly printed: readonly RegExp[] } | undefined;
  /** Sentences to print at the end. */
  readonly remarks: readonly string[];
}

export interface DeploymentContext {
  /** Absolute: the output's folder. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** An application in the form that a platform takes. */
export interface TargetBundle {
  readonly files: OutputFiles;
  /** Problems that only the finished bundle shows. */
  readonly problems?: readonly BuildProblem[] | undefined;
  readonly warnings?: readonly string[] | undefined;
  /** A sentence about its size and the platform's limits. */
  readonly size?: string | undefined;
}

/** A platform or form in which an application runs. */
export interface Target {
  readonly name: string;
  readonly summary: string;
  /** The application's folder in the output; undefined for a target that uses the repository itself. */
  readonly application: string | undefined;
  /** Whether the files are in the output's folder or in the project's root, where the platform looks for them. */
  readonly placement: "output" | "root";
  /** Parts of the project that the target does not support. */
  problems(app: Application): readonly BuildProblem[];
  /** Differences between the target and this machine, with figures. */
  warnings(app: Application): readonly string[];
  files(app: Application): readonly TargetFile[];
  /** The application's files in the platform's layout; default: those of `app`. */
  bundle?(app: Application): Promise<TargetBundle>;
  /** Variables that the platform needs besides those of the application. */
  readonly variables?: readonly string[] | undefined;
  /** Commands that run the output, as complete lines; comments begin with #. `folder` is quoted for a shell. */
  next(app: Application, folder: string): readonly string[];
  /** Absent for a target without `kit deploy`. */
  deployment?(app: Application, context: DeploymentContext): Deployment;
}
