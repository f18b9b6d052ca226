import type { PythonObject, PythonValue } from "../contract.ts";
import type { DataclassRegistry } from "../dataclass-registry.ts";
import { isWireList, type WireTime, type WireValue } from "./wire-value.ts";

/** Decodes a value from Python for the host. An instance of a registered dataclass becomes the result of its `create`. */
export function decodeValue(wire: WireValue, registry: DataclassRegistry): PythonValue {
  if (wire === null || typeof wire !== "object") return wire;
  const inside = (part: WireValue): PythonValue => decodeValue(part, registry);
  if (isWireList(wire)) return wire.map(inside);
  switch (wire.t) {
    case "number":
      return Number(wire.v);
    case "int":
      return BigInt(wire.v);
    case "bytes":
      // Copy the bytes: a Buffer shares its memory, and prints and compares differently.
      return new Uint8Array(Buffer.from(wire.v, "base64"));
    case "tuple":
      return wire.v.map(inside);
    case "dict":
      return new Map(wire.v.map(([key, value]) => [inside(key), inside(value)]));
    case "set":
      return new Set(wire.v.map(inside));
    case "time":
      return decodeTime(wire.v);
    case "dataclass": {
      const values = wire.v.map(inside);
      const fields: PythonObject = Object.fromEntries(
        wire.fields.map((name, index) => [name, values[index] ?? null]),
      );
      return registry.build(wire.name, fields);
    }
  }
}

/** An aware datetime becomes a Date; one without a time zone becomes its ISO 8601 text. */
function decodeTime(time: WireTime): Date | string | number {
  switch (time.kind) {
    case "DateTime": {
      const text = `${dateText(time)}T${two(time.hour)}:${two(time.minute)}:${two(time.second)}`;
      const fraction = `.${String(time.microsecond).padStart(6, "0")}`;
      if (time.offsetSeconds === undefined) return time.microsecond === 0 ? text : text + fraction;
      return new Date(Date.parse(`${text}${fraction.slice(0, 4)}Z`) - time.offsetSeconds * 1000);
    }
    case "Date":
      return dateText(time);
    case "TimeDelta":
      return time.days * 86_400 + time.seconds + time.microseconds / 1_000_000;
    case "TimeZone": {
      if (time.name !== undefined || time.offsetSeconds === 0) return time.name ?? "UTC";
      const minutes = Math.abs(time.offsetSeconds) / 60;
      const sign = time.offsetSeconds < 0 ? "-" : "+";
      return `UTC${sign}${two(Math.floor(minutes / 60))}:${two(Math.floor(minutes % 60))}`;
    }
  }
}

function dateText(date: { readonly year: number; readonly month: number; readonly day: number }): string {
  return `${String(date.year).padStart(4, "0")}-${two(date.month)}-${two(date.day)}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
