// The JSON of /usage/keys: the keys of the dashboard's panel.

export type PanelKey = {
  readonly keyId: string
  /** Null where the record is missing. */
  readonly subscriber: string | null
  readonly tier: string | null
  /** Of the local day, over the fleet. */
  readonly used: number
  readonly limit: number | null
  /** On this gateway; null for a key that it has not met of late. */
  readonly here: {
    /** Requests by hour, 24 of them; the last is the hour that runs. */
    readonly hours: readonly number[]
    /** Of the local day, by the code of the error. */
    readonly refusals: Readonly<Record<string, number>>
    readonly lastUsedAt: string | null
  } | null
}

export type KeyPanelReport = {
  readonly at: string
  /** Whether all keys were looked at, and all that were found are here. */
  readonly isWhole: boolean
  /** With most requests first. */
  readonly keys: readonly PanelKey[]
}
