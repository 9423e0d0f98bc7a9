// The part of the negotiator package that is used here; its published types stop before version 1.
declare module 'negotiator' {
  // biome-ignore lint/style/noDefaultExport: it is what the package has
  export default class Negotiator {
    constructor(request: { headers: Record<string, string | undefined> })
    /** Those of the available ones that may be used, the preferred first. */
    language(available: readonly string[]): string | undefined
    encodings(available: readonly string[], options?: { preferred?: readonly string[] }): string[]
  }
}
