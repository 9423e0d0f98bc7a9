// Mutants that no test can kill, because the changed program does the same for every caller. Each row: its file, the line before
// and after, and why it is the same program.

export type Equivalent = {
  readonly file: string
  readonly before: string
  readonly after: string
  readonly why: string
}

export const equivalents: readonly Equivalent[] = []
