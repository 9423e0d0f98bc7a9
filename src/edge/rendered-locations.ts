// Rendered lists and places. A catalogue never changes, so what was rendered of it is kept until another takes its
// place, the most wanted up to a bound.

import { LRUCache } from 'lru-cache'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { lastingText } from './lasting.ts'
import { type Forms, type Representation, tagOf } from './representation.ts'

// Places change when an operator swaps the catalogue; a minute is how long a consumer may not have heard of it.
const metadataHeaders = 'cache-control: private, max-age=60\r\n'

// What a kept body takes beside its bytes, roughly.
const objectBytes = 600

export type RenderedLocations = (
  name: string,
  catalogue: Catalogue,
  render: () => { body: object; link?: string },
) => Representation

/** @param keepBytes what the bodies that are kept may take */
export const createRenderedLocations = (keepBytes: number): RenderedLocations => {
  const kept = new LRUCache<string, Representation>({
    maxSize: keepBytes,
    sizeCalculation: ({ pieces: [bytes] }, name) => bytes.length + name.length + objectBytes,
  })
  let of: Catalogue | undefined

  return (name, catalogue, render) => {
    if (of !== catalogue) {
      kept.clear()
      of = catalogue
    }
    const found = kept.get(name)
    if (found) return found
    const { body, link } = render()
    const bytes = lastingText(JSON.stringify(body))
    const forms: Forms = {}
    let formBytes = 0
    const representation: Representation = {
      tag: tagOf(bytes),
      headers: link ? `${metadataHeaders}link: ${link}\r\n` : metadataHeaders,
      pieces: [bytes],
      ready: {},
      forms: () => forms,
      made: form => {
        formBytes += form.length
        if (kept.peek(name) === representation)
          kept.set(name, representation, { size: bytes.length + name.length + objectBytes + formBytes })
      },
    }
    kept.set(name, representation)
    return representation
  }
}
