/** Splits one line of CSV into its fields. */
export function parseLine(line) {
  return line.split(',');
}
