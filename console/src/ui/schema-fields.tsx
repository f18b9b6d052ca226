import { type ReactNode, useId, useState } from "react";
import { Button } from "./button.tsx";
import { visible } from "./text.ts";

interface Schema {
  readonly [keyword: string]: unknown;
}

/** The depth from which parts are edited as JSON. */
const deepest = 5;
/** The most choices that are shown as a list; with more, the user types the value. */
const mostChoices = 200;

interface FieldProps {
  readonly name: string;
  readonly schema: unknown;
  readonly value: unknown;
  readonly isRequired: boolean;
  readonly depth?: number;
  /** `undefined` removes the value. */
  readonly onChange: (value: unknown) => void;
}

/** Whether a schema describes an object with named fields, for which a form can be shown. */
export function hasFields(schema: unknown): boolean {
  return isSchema(schema) && isSchema(schema.properties) && Object.keys(schema.properties).length > 0;
}

/** The fields of an object, from its JSON Schema. Parts without a matching field are edited as JSON. */
export function SchemaFields({
  schema,
  value,
  depth = 0,
  onChange,
}: {
  readonly schema: unknown;
  readonly value: unknown;
  readonly depth?: number;
  readonly onChange: (value: Readonly<Record<string, unknown>>) => void;
}): ReactNode {
  const properties = isSchema(schema) && isSchema(schema.properties) ? schema.properties : {};
  const required = isSchema(schema) && Array.isArray(schema.required) ? schema.required : [];
  const object = isSchema(value) ? value : {};
  return (
    <div className="flex min-w-0 flex-col gap-3">
      {Object.entries(properties).map(([name, field]) => (
        <SchemaField
          key={name}
          name={name}
          schema={field}
          value={object[name]}
          isRequired={required.includes(name)}
          depth={depth}
          onChange={(next) => {
            const { [name]: _, ...others } = object;
            onChange(next === undefined ? others : { ...object, [name]: next });
          }}
        />
      ))}
    </div>
  );
}

const box = "h-8 min-w-0 rounded-md border border-line-strong bg-back px-2.5 text-sm";

function SchemaField(props: FieldProps): ReactNode {
  const { name, schema, value, isRequired, depth = 0, onChange } = props;
  const field = useId();
  const { title, description } = isSchema(schema) ? schema : {};
  const kind = depth >= deepest ? "json" : kindOf(schema);
  const label = (
    <span className="text-soft text-sm foreign">
      {visible(typeof title === "string" ? title : name)}
      {isRequired ? <span className="text-bad"> *</span> : null}
    </span>
  );
  const note =
    typeof description === "string" ? (
      <span className="text-faint text-xs foreign">{visible(description.slice(0, 500))}</span>
    ) : null;
  if (kind === "object")
    return (
      <fieldset className="flex min-w-0 flex-col gap-2 rounded-md border border-line p-3">
        <legend className="px-1">{label}</legend>
        {note}
        <SchemaFields schema={schema} value={value} depth={depth + 1} onChange={onChange} />
      </fieldset>
    );
  if (kind === "array") return <ListField {...props} label={label} note={note} />;
  // An untouched box would say no for the user, so a required answer is chosen.
  if (kind === "boolean" && !isRequired)
    return (
      <label className="flex items-center gap-2">
        <input type="checkbox" checked={value === true} onChange={({ target }) => onChange(target.checked)} />
        {label}
        {note}
      </label>
    );
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={field}>{label}</label>
      {kind === "enum" || kind === "boolean" ? (
        <ChoiceField
          id={field}
          choices={kind === "boolean" ? [true, false] : (choicesOf(schema as Schema) ?? [])}
          value={value}
          isRequired={isRequired}
          onChange={onChange}
        />
      ) : kind === "number" || kind === "integer" ? (
        <input
          id={field}
          type="number"
          step={kind === "integer" ? 1 : "any"}
          min={numberIn(schema, "minimum")}
          max={numberIn(schema, "maximum")}
          required={isRequired}
          defaultValue={typeof value === "number" ? value : ""}
          onChange={({ target }) => onChange(target.value === "" ? undefined : target.valueAsNumber)}
          className={`${box} tabular`}
        />
      ) : kind === "string" ? (
        <TextField
          id={field}
          schema={schema as Schema}
          value={value}
          isRequired={isRequired}
          onChange={onChange}
        />
      ) : (
        <JsonField id={field} value={value} isRequired={isRequired} onChange={onChange} />
      )}
      {note}
    </div>
  );
}

type InputProps = Pick<FieldProps, "value" | "isRequired" | "onChange"> & { readonly id: string };

function TextField({
  id,
  schema,
  value,
  isRequired,
  onChange,
}: InputProps & { readonly schema: Schema }): ReactNode {
  const text = typeof value === "string" ? value : "";
  const change = (next: string): void => onChange(next === "" && !isRequired ? undefined : next);
  const length = { minLength: numberIn(schema, "minLength"), maxLength: numberIn(schema, "maxLength") };
  if (text.includes("\n") || text.length > 80)
    return (
      <textarea
        id={id}
        value={text}
        rows={6}
        spellCheck={false}
        onChange={({ target }) => change(target.value)}
        className="min-w-0 rounded-md border border-line-strong bg-back p-2.5 font-mono text-xs"
      />
    );
  return (
    <input
      id={id}
      value={text}
      required={isRequired && (length.minLength ?? 0) > 0}
      {...length}
      autoComplete="off"
      onChange={({ target }) => change(target.value)}
      className={box}
    />
  );
}

function ChoiceField({
  id,
  choices,
  value,
  isRequired,
  onChange,
}: InputProps & { readonly choices: readonly unknown[] }): ReactNode {
  const chosen = choices.indexOf(value);
  return (
    <select
      id={id}
      value={chosen === -1 ? "" : chosen}
      required={isRequired}
      onChange={({ target }) => onChange(target.value === "" ? undefined : choices[Number(target.value)])}
      className={box}
    >
      {chosen === -1 || !isRequired ? (
        // The browser refuses to send a form with an empty value in a required field.
        <option value="" disabled={isRequired}>
          {isRequired ? "choose one" : "none"}
        </option>
      ) : null}
      {choices.map((choice, at) => (
        <option key={String(choice)} value={at}>
          {visible(choice === true ? "yes" : choice === false ? "no" : String(choice))}
        </option>
      ))}
    </select>
  );
}

function JsonField({ id, value, isRequired, onChange }: InputProps): ReactNode {
  const [text, setText] = useState(() => (value === undefined ? "" : JSON.stringify(value, null, 2)));
  const [problem, setProblem] = useState<string>();
  return (
    <>
      <textarea
        id={id}
        value={text}
        rows={4}
        spellCheck={false}
        required={isRequired}
        placeholder="JSON"
        onChange={({ target }) => {
          setText(target.value);
          let fault = "";
          try {
            onChange(target.value.trim() === "" ? undefined : JSON.parse(target.value));
          } catch (error) {
            fault = `This is not JSON: ${error instanceof Error ? error.message : error}`;
          }
          target.setCustomValidity(fault);
          setProblem(fault === "" ? undefined : fault);
        }}
        className="min-w-0 rounded-md border border-line-strong bg-back p-2.5 font-mono text-xs placeholder:text-faint"
      />
      {problem === undefined ? null : (
        <span role="alert" className="text-bad text-xs">
          {problem}
        </span>
      )}
    </>
  );
}

function ListField({
  name,
  schema,
  value,
  depth = 0,
  onChange,
  label,
  note,
}: FieldProps & { readonly label: ReactNode; readonly note: ReactNode }): ReactNode {
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  const item = isSchema(schema) ? schema.items : undefined;
  const [version, setVersion] = useState(0);
  return (
    <fieldset className="flex min-w-0 flex-col gap-2 rounded-md border border-line p-3">
      <legend className="px-1">{label}</legend>
      {note}
      {items.map((one, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: values have no other identity; a shorter list gets a new version.
        <div key={`${version}-${at}`} className="flex items-start gap-2">
          <div className="min-w-0 flex-1">
            <SchemaField
              name={`${name} ${at + 1}`}
              schema={item}
              value={one}
              isRequired={true}
              depth={depth + 1}
              onChange={(next) => onChange(items.map((old, index) => (index === at ? next : old)))}
            />
          </div>
          <Button
            variant="quiet"
            icon="close"
            aria-label={`Remove ${name} ${at + 1}`}
            onClick={() => {
              setVersion(version + 1);
              onChange(items.filter((_, index) => index !== at));
            }}
          />
        </div>
      ))}
      <div>
        <Button icon="plus" onClick={() => onChange([...items, emptyOf(item)])}>
          Add {visible(name)}
        </Button>
      </div>
    </fieldset>
  );
}

type Kind = "enum" | "string" | "number" | "integer" | "boolean" | "array" | "object" | "json";

function kindOf(schema: unknown): Kind {
  if (!isSchema(schema)) return "json";
  if (choicesOf(schema) !== undefined) return "enum";
  const { type } = schema;
  const plain = Array.isArray(type) ? type.filter((one) => one !== "null") : [type];
  if (plain.length !== 1) return "json";
  switch (plain[0]) {
    case "string":
    case "number":
    case "integer":
    case "boolean":
      return plain[0];
    case "array":
      return isSchema(schema.items) ? "array" : "json";
    case "object":
      return hasFields(schema) ? "object" : "json";
    default:
      return "json";
  }
}

function choicesOf(schema: Schema): readonly unknown[] | undefined {
  const choices = Array.isArray(schema.enum)
    ? schema.enum
    : "const" in schema
      ? [schema.const]
      : constantsOf(schema);
  if (choices === undefined || choices.length > mostChoices) return undefined;
  const isPlain = choices.every((one) => one === null || typeof one !== "object");
  return isPlain ? choices : undefined;
}

/** The choices of a `oneOf` of constants. */
function constantsOf({ oneOf, anyOf }: Schema): readonly unknown[] | undefined {
  const options: unknown = oneOf ?? anyOf;
  if (!Array.isArray(options) || !options.every((one) => isSchema(one) && "const" in one)) return undefined;
  return options.map((one: Schema) => one.const);
}

function emptyOf(schema: unknown): unknown {
  switch (kindOf(schema)) {
    case "string":
      return "";
    case "boolean":
      return false;
    case "number":
    case "integer":
      return 0;
    case "array":
      return [];
    case "object":
      return {};
    case "enum":
      return isSchema(schema) ? choicesOf(schema)?.[0] : null;
    default:
      return null;
  }
}

function numberIn(schema: unknown, keyword: string): number | undefined {
  const value = isSchema(schema) ? schema[keyword] : undefined;
  return typeof value === "number" ? value : undefined;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
