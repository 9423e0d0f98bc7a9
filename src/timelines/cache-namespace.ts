// The cache namespace: a hash of provider, variables and time zone that prefixes every cache key. Entries of another namespace
// are never read, so a change of these settings starts with an empty cache. Each entry has its own horizon. Pure.

import { hash } from 'node:crypto'
import type { ProviderProtocol } from '../provider/protocol.ts'
import type { CellId } from '../weather/cell.ts'

/** The namespace of a provider and protocol; equal for equal configurations. */
export const namespaceOf = (baseUrl: string, { identity }: Pick<ProviderProtocol, 'identity'>): string =>
  hash('sha256', baseUrl + identity).slice(0, 12)

/** The cache key of a cell. */
export const keyFor = (namespace: string, cell: CellId): string => `${namespace}:${cell}`
