/** The lines of tests/security/known-forms.json, by topic. */
export interface HostileForms {
  readonly why: string;
  readonly attacks: Readonly<Record<string, readonly string[]>>;
}

const writers: ReadonlySet<string> = new Set("touch mkdir cp mv ln rm rmdir chmod tee".split(" "));

/** The programs of the lines, as entries of a list; without those whose purpose is to write. */
export function attackedPrograms({ attacks }: HostileForms): readonly string[] {
  const programs = Object.values(attacks).flatMap((lines) => lines.map((line) => line.split(" ")[0] ?? ""));
  return [...new Set(programs)].filter((program) => !writers.has(program));
}
