import { type Form, form } from "./form.ts";

const help = "--help --version";

/** A program that reads files, or standard input, and prints what it makes of them. */
function reads(options: string): Form {
  return form({ options: `${options} ${help}`, operands: "read" });
}

const sums = "-b --binary -t --text -z --zero --tag";
const encoding = "-d -D --decode -i --ignore-garbage -w=number --wrap=number -b=number";

/** Programs that print texts and files. */
export const textPrograms: Readonly<Record<string, Form>> = {
  base32: reads(encoding),
  base64: reads(encoding),
  b2sum: reads(sums),
  cat: reads(
    "-A -b -e -E -n -s -t -T -u -v --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting",
  ),
  cksum: reads(""),
  column: reads(
    "-t --table -s=text --separator=text -o=text --output-separator=text -c=number --output-width=number -x --fillrows -n=text --table-name=text -N=text --table-columns=text -R=text --table-right=text -H=text --table-hide=text -T=text -W=text -O=text --table-order=text -d --table-noheadings -e -J --json -L --keep-empty-lines",
  ),
  comm: form({
    options: `-1 -2 -3 -z --total --zero-terminated --check-order --nocheck-order --output-delimiter=text ${help}`,
    operands: "read",
  }),
  cut: reads(
    "-b=text -c=text -d=text -f=text -n -s -z --bytes=text --characters=text --delimiter=text --fields=text --complement --only-delimited --output-delimiter=text --zero-terminated",
  ),
  echo: (args) => (args.length >= 0 ? { paths: [] } : ""),
  expand: reads("-i -t=text --initial --tabs=text"),
  expr: (args) => (args.length >= 0 ? { paths: [] } : ""),
  fmt: reads("-c -s -t -u -w=number -g=number -p=text -# --width=number --goal=number --prefix=text"),
  fold: reads("-b -s -w=number -# --bytes --spaces --width=number"),
  head: reads(
    "-c=number -n=number -q -v -z -# --bytes=number --lines=number --quiet --silent --verbose --zero-terminated",
  ),
  hexdump: reads(
    "-b -c -C -d -o -x -v -e=text -n=number -s=number --canonical --no-squeezing --length=number --skip=number",
  ),
  join: reads(
    "-a=1|2 -e=text -i -j=number -o=text -t=text -v=1|2 -1=number -2=number -z --check-order --nocheck-order --header --ignore-case --zero-terminated",
  ),
  md5sum: reads(sums),
  nl: reads(
    "-b=text -d=text -f=text -h=text -i=number -l=number -n=ln|rn|rz -p -s=text -v=number -w=number --body-numbering=text --number-format=ln|rn|rz --number-separator=text --number-width=number --starting-line-number=number",
  ),
  od: reads(
    "-A=d|o|x|n -j=number -N=number -S=number -t=text -v -w[=number] -a -b -c -d -f -i -l -o -s -x --address-radix=d|o|x|n --skip-bytes=number --read-bytes=number --strings[=number] --format=text --width[=number] --output-duplicates --endian=big|little",
  ),
  paste: reads("-d=text -s -z --delimiters=text --serial --zero-terminated"),
  printf: (args) => (args.length >= 0 ? { paths: [] } : ""),
  rev: reads(""),
  seq: form({
    options: `-# -f=text -s=text -w --format=text --separator=text --equal-width ${help}`,
    max: 3,
  }),
  sha1sum: reads(sums),
  sha224sum: reads(sums),
  sha256sum: reads(sums),
  sha384sum: reads(sums),
  sha512sum: reads(sums),
  shasum: reads("-a=number -b -t --algorithm=number"),
  // What `-e` echoes is text, so its operands may be anything; they are held to be paths all the same.
  shuf: reads(
    "-e -i=text -n=number -r -z --echo --input-range=text --head-count=number --repeat --zero-terminated",
  ),
  sort: reads(
    "-b -c -C -d -f -g -h -i -k=text -m -M -n -r -R -s -S=text -t=text -u -V -z --ignore-leading-blanks --check[=quiet|silent|diagnose-first] --dictionary-order --ignore-case --general-numeric-sort --human-numeric-sort --ignore-nonprinting --key=text --merge --month-sort --numeric-sort --reverse --random-sort --stable --buffer-size=text --field-separator=text --unique --version-sort --zero-terminated --sort=general-numeric|human-numeric|month|numeric|random|version --parallel=number --batch-size=number --debug",
  ),
  // Its operand @file is a file of more options.
  strings: form({
    options: `-a --all -d --data -f --print-file-name -n=number --bytes=number -# -t=o|d|x --radix=o|d|x -o -w --include-all-whitespace -e=s|S|b|l|B|L --encoding=s|S|b|l|B|L ${help}`,
    operands: "read",
    check: ({ operands }) => {
      const response = operands.find((operand) => operand.startsWith("@"));
      return response === undefined ? undefined : `"${response}" is a file of options; write ./${response}`;
    },
  }),
  sum: reads("-r -s --sysv"),
  tac: reads("-b -r -s=text --before --regex --separator=text"),
  tail: reads(
    "-c=number -n=number -q -r -v -z -# --bytes=number --lines=number --quiet --silent --verbose --zero-terminated",
  ),
  tr: form({
    options: `-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1 ${help}`,
    min: 1,
    max: 2,
  }),
  tsort: reads(""),
  unexpand: reads("-a -t=text --all --first-only --tabs=text"),
  // The second operand is a file that it writes.
  uniq: form({
    options: `-c -d -D -f=number -i -s=number -u -w=number -z -# --count --repeated --all-repeated[=none|prepend|separate] --skip-fields=number --group[=separate|prepend|append|both] --ignore-case --skip-chars=number --unique --zero-terminated --check-chars=number ${help}`,
    operands: "read",
    max: 1,
    optionsFirst: true,
  }),
  wc: reads("-c -l -L -m -w --bytes --chars --lines --max-line-length --words"),
};
