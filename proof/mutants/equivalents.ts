// Mutants that no test can kill, because the changed program does the same for every caller. Each row: its file, the line before
// and after, and why it is the same program.

export type Equivalent = {
  readonly file: string
  readonly before: string
  readonly after: string
  readonly why: string
}

export const equivalents: readonly Equivalent[] = [
  {
    file: 'src/keys/keys-with-subscribers.ts',
    before: 'const subscribersPerTurn = 500',
    after: 'const subscribersPerTurn = (500 + 1)',
    why: 'A listing has the same subscribers in the same order, in parts that are one longer.',
  },
]
