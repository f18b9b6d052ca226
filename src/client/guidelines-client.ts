import type {
  ConversionResult,
  ExportFormat,
  ExportResult,
  Guideline,
  GuidelineList,
} from "../protocol/guideline.ts";
import type { ConvertRequest, GuidelineQuery } from "../protocol/guideline-query.ts";
import type { CallOptions } from "./call-options.ts";
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
    list: (query = {}, options = {}) =>
      request({ method: "GET", path: ["api", "guidelines"], query, options }),
    get: (guidelineId, options = {}) =>
      request({ method: "GET", path: ["api", "guidelines", guidelineId], options }),
    convert: (body, options = {}) => {
      const repeatable = body.preview !== false;
      return request({ method: "POST", path: ["api", "guidelines", "convert"], body, options, repeatable });
    },
    export: (format, options = {}) => {
      const body = { format };
      return request({
        method: "POST",
        path: ["api", "guidelines", "export"],
        body,
        options,
        repeatable: true,
      });
    },
  };
}
