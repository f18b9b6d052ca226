import { KitError } from "../base/kit-error.ts";
import type { Project } from "../project/project.ts";
import type { IndexingProgress } from "../protocol/indexing.ts";

/** The sign of an answer that may lack what is not indexed yet. */
export function indexingOf(project: Project): { readonly indexing?: IndexingProgress } {
  const indexing = project.indexing();
  return indexing === undefined ? {} : { indexing };
}

/** What is not found in a project that is still being indexed may be there: the caller is to ask again. */
export function notFoundYet(project: Project, notFound: KitError): KitError {
  const indexing = project.indexing();
  if (indexing === undefined) return notFound;
  const { done, total } = indexing;
  const message = `It is not among what is indexed so far (${done} of ${total} files). Ask again in a moment.`;
  return new KitError({ code: "unavailable", message });
}
