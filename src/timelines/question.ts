// What every timeline of a gateway has in common: who is asked, for what, how far ahead, in which time zone. Entries of
// another question are never read, so a change of it starts with an empty cache and never with a wrong answer. Pure.

import { hash } from 'node:crypto'
import type { ProviderProtocol } from '../provider/protocol.ts'
import type { CellId } from '../weather/cell.ts'

/** A short name for the question, the same for equal questions. */
export const questionOf = (baseUrl: string, { identity }: Pick<ProviderProtocol, 'identity'>): string =>
  hash('sha256', baseUrl + identity).slice(0, 12)

/** Where a cell's timeline lies in the cache. */
export const keyFor = (question: string, cell: CellId): string => `${question}:${cell}`

export const cellIdOf = (key: string): CellId => key.slice(key.indexOf(':') + 1) as CellId
