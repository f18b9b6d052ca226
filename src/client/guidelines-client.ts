import type {
  ConversionResult,
  ExportFormat,
  ExportResult,
  Guideline,
  GuidelineList,
} from "../protocol/guideline.ts";
import type { ConvertRequest, GuidelineQuery } from "../protocol/guideline-query.ts";
import type { CallOptions } from "./call-options.ts";
import { route } from "./route-call.ts";
import type { Transport } from "./transport.ts";

export interface GuidelinesClient {
  /** In order of file, then position; those for a file where the query names one. */
  list(query?: GuidelineQuery, options?: CallOptions): Promise<GuidelineList>;
  /** Throws `guideline_not_found`. */
  get(guidelineId: string, options?: CallOptions): Promise<Guideline>;
  /** Writes nothing unless `preview` is false. */
  convert(request: ConvertRequest, options?: CallOptions): Promise<ConversionResult>;
  /** All guidelines as one file; writes nothing. */
  export(format: ExportFormat, options?: CallOptions): Promise<ExportResult>;
}

export function createGuidelinesClient({ request }: Transport): GuidelinesClient {
  return {
    list: (query = {}, options) => request(route("GET /api/guidelines", { query, options })),
    get: (id, options) => request(route("GET /api/guidelines/{id}", { params: { id }, options })),
    convert: (body, options) =>
      request(route("POST /api/guidelines/convert", { body, options, repeatable: body.preview !== false })),
    export: (format, options) =>
      request(route("POST /api/guidelines/export", { body: { format }, options, repeatable: true })),
  };
}
