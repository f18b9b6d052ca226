import type { Field, Question } from "./parts.ts";

export interface Answer {
  readonly approved: boolean;
  readonly result?: unknown;
}

const states = { waiting: "waits for you", answered: "answered", declined: "declined" };

/** A question with a form for its answer: texts, numbers, choices, and yes or no. The server checks the answer by the schema. */
export function QuestionCard(props: {
  readonly question: Question;
  readonly onAnswer: (answer: Answer) => Promise<void>;
}) {
  const { question, onAnswer } = props;
  const { message, schema, state } = question;
  const fields = Object.entries(schema.properties ?? {});
  return (
    <section className="call question" data-state={state} aria-label="Question">
      <h3>
        {message}
        <span>{states[state]}</span>
      </h3>
      {state === "waiting" && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const given = new FormData(event.currentTarget);
            const result = fields.flatMap(([name, field]) => {
              const value = toValue(field, given.get(name));
              return value === undefined ? [] : [[name, value]];
            });
            void onAnswer({ approved: true, result: Object.fromEntries(result) });
          }}
        >
          {fields.map(([name, field]) => (
            <p key={name}>
              <label htmlFor={`${question.id}-${name}`}>{field.description ?? name}</label>
              <Input
                id={`${question.id}-${name}`}
                name={name}
                field={field}
                required={schema.required?.includes(name) === true}
              />
            </p>
          ))}
          <div className="decision">
            <button type="submit" className="primary">
              Answer
            </button>
            <button type="button" onClick={() => void onAnswer({ approved: false })}>
              Decline
            </button>
          </div>
        </form>
      )}
    </section>
  );
}

function Input(props: { id: string; name: string; field: Field; required: boolean }) {
  const { field, ...input } = props;
  if (field.type === "boolean") return <input {...input} type="checkbox" required={false} />;
  if (field.enum !== undefined)
    return (
      <select {...input}>
        {field.enum.map((value) => (
          <option key={value}>{value}</option>
        ))}
      </select>
    );
  const isNumber = field.type === "integer" || field.type === "number";
  return <input {...input} type={isNumber ? "number" : "text"} step="any" />;
}

function toValue({ type }: Field, given: FormDataEntryValue | null): unknown {
  if (type === "boolean") return given !== null;
  if (given === null || given === "") return undefined;
  return type === "integer" || type === "number" ? Number(given) : given;
}
