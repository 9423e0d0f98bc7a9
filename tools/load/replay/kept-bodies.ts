// The bodies that a replay keeps for a check or a digest: one per path and status, in bounded memory.

import type { Destination } from 'abohawa/common/endpoints.ts'
import type { Answer } from './http1.ts'
import type { RequestForm } from './schedule.ts'

export type KeptBody = {
  readonly path: string
  readonly endpoint: Destination
  readonly status: number
  readonly encoding: string | undefined
  readonly body: Uint8Array
}

const maxKeptBytes = 128 * 1_048_576

// An error may come before the first 200.
const nameOf = ({ path, status }: Pick<KeptBody, 'path' | 'status'>): string =>
  status === 200 ? path : `${status} ${path}`

/** Of what several workers kept, one per path and status. */
export const oneEach = (bodies: readonly KeptBody[]): KeptBody[] => {
  const byName = new Map<string, KeptBody>()
  for (const body of bodies) if (!byName.has(nameOf(body))) byName.set(nameOf(body), body)
  return [...byName.values()]
}

export class KeptBodies {
  readonly list: KeptBody[] = []
  readonly #names = new Set<string>()
  #bytes = 0

  wants({ method, path }: RequestForm, most: number): boolean {
    return this.list.length < most && this.#bytes < maxKeptBytes && method === 'GET' && !this.#names.has(path)
  }
  add({ path, endpoint }: RequestForm, { status, head, body }: Answer): void {
    if (!body || status === 304) return
    const name = nameOf({ path, status })
    if (this.#names.has(name)) return
    this.#names.add(name)
    this.#bytes += body.length
    this.list.push({ path, endpoint, status, encoding: head.encoding, body })
  }
}
