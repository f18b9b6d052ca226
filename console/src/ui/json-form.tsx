import { type FormEvent, type ReactNode, useId, useState } from "react";
import { Button } from "./button.tsx";
import { Choice } from "./chips.tsx";
import { Dialog } from "./dialog.tsx";
import { hasFields, SchemaFields } from "./schema-fields.tsx";

interface JsonFormProps {
  /** The text of the button that opens the window, and its title. */
  readonly label: string;
  readonly variant?: "plain" | "solid";
  readonly value: unknown;
  /** The JSON Schema of the value, from which the form is made. The user can also edit the value as JSON. */
  readonly schema?: unknown;
  readonly children?: ReactNode;
  /** Rejects with the error to show. */
  readonly onSubmit: (value: unknown) => Promise<void>;
}

/** Asks for a JSON value in a dialog, with fields if its schema is known, and shows the server's answer. */
export function JsonForm({
  label,
  variant = "plain",
  value,
  schema,
  children,
  onSubmit,
}: JsonFormProps): ReactNode {
  const field = useId();
  const [isOpen, setOpen] = useState(false);
  const [isWritten, setWritten] = useState(false);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const showsFields = hasFields(schema) && !isWritten;
  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    const parsed = parse(text);
    if ("problem" in parsed) return setProblem(parsed.problem);
    setBusy(true);
    setProblem(undefined);
    try {
      await onSubmit(parsed.value);
      setOpen(false);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  }
  const current = parse(text);
  return (
    <>
      <Button
        variant={variant}
        onClick={() => {
          setOpen(true);
          setProblem(undefined);
          setWritten(false);
          setText(JSON.stringify(value ?? {}, null, 2));
        }}
      >
        {label}
      </Button>
      {isOpen ? (
        <Dialog title={label} onClose={() => setOpen(false)}>
          {children}
          <form onSubmit={(event) => void submit(event)} className="flex flex-col gap-3">
            {hasFields(schema) ? (
              <Choice
                label="Input format"
                value={showsFields ? "fields" : "json"}
                choices={[
                  { value: "fields", label: "Fields" },
                  { value: "json", label: "JSON" },
                ]}
                onChoose={(choice) => {
                  if (choice === "fields" && "problem" in current) return setProblem(current.problem);
                  setProblem(undefined);
                  setWritten(choice === "json");
                }}
              />
            ) : null}
            {showsFields && "value" in current ? (
              <SchemaFields
                schema={schema}
                value={current.value}
                onChange={(next) => setText(JSON.stringify(next, null, 2))}
              />
            ) : (
              <>
                <label htmlFor={field} className="text-soft text-sm">
                  Payload (JSON)
                </label>
                <textarea
                  id={field}
                  value={text}
                  spellCheck={false}
                  rows={10}
                  onChange={({ target }) => setText(target.value)}
                  className="rounded-md border border-line-strong bg-back p-2.5 font-mono text-xs"
                />
              </>
            )}
            {problem === undefined ? null : (
              <p role="alert" className="text-bad text-sm foreign">
                {problem}
              </p>
            )}
            <div className="flex justify-end gap-2">
              <Button variant="quiet" onClick={() => setOpen(false)}>
                Close
              </Button>
              <Button variant="solid" type="submit" isBusy={isBusy}>
                Send
              </Button>
            </div>
          </form>
        </Dialog>
      ) : null}
    </>
  );
}

function parse(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : error}` };
  }
}
