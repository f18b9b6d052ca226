/** The lines of tests/security/known-forms.json, by what they are about. */
export interface HostileForms {
  readonly why: string;
  readonly attacks: Readonly<Record<string, readonly string[]>>;
}

const writers: ReadonlySet<string> = new Set("touch mkdir cp mv ln rm rmdir chmod tee".split(" "));

/** The programs that the lines are about, as a list names them; those that are there to write are not named. */
export function attackedPrograms({ attacks }: HostileForms): readonly string[] {
  const programs = Object.values(attacks).flatMap((lines) => lines.map((line) => line.split(" ")[0] ?? ""));
  return [...new Set(programs)].filter((program) => !writers.has(program));
}
