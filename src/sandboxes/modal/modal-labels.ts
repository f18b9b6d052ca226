const most = 63;
const plain = /^[A-Za-z0-9._-]{1,63}$/;
const mark = "b64.";
const partName = /^(.+)\.(\d+)$/;

/**
 * Labels as Modal's tags, whose values have at most 63 letters, digits, dots, dashes and underscores: any other value
 * stands in base64url, in as many tags as it needs (`kit_instance`, `kit_instance.1`, ...).
 */
export function toTags(labels: Readonly<Record<string, string>>): Record<string, string> {
  const tags: Record<string, string> = {};
  for (const [name, value] of Object.entries(labels)) {
    const text =
      plain.test(value) && !value.startsWith(mark)
        ? value
        : `${mark}${Buffer.from(value).toString("base64url")}`;
    for (let part = 0; part * most < text.length; part += 1)
      tags[part === 0 ? name : `${name}.${part}`] = text.slice(part * most, (part + 1) * most);
  }
  return tags;
}

/** The labels that tags were made of. */
export function toLabels(tags: Readonly<Record<string, string>>): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [name, first] of Object.entries(tags)) {
    if (partName.test(name)) continue;
    let text = first;
    for (let part = 1; tags[`${name}.${part}`] !== undefined; part += 1) text += tags[`${name}.${part}`];
    labels[name] = text.startsWith(mark)
      ? Buffer.from(text.slice(mark.length), "base64url").toString()
      : text;
  }
  return labels;
}
