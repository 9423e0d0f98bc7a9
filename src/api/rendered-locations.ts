// Rendered lists and places. A catalogue never changes, so its bodies are kept until another catalogue replaces it: the most
// requested ones, up to a bound.

import { LRUCache } from 'lru-cache'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { encodeWhole } from './content-coding.ts'
import { type Representation, tagOf } from './representation.ts'
import { unpooledText } from './unpooled.ts'

// Places change when an operator swaps the catalogue; a minute is how long a consumer may not have heard of it.
const metadataHeaders = 'cache-control: private, max-age=60\r\n'

// The rough overhead of a kept body beside its bytes.
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
    sizeCalculation: ({ chunks: [bytes] }, name) => bytes.length + name.length + objectBytes,
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
    const bytes = unpooledText(JSON.stringify(body))
    let encodedBytes = 0
    const representation: Representation = {
      tag: tagOf(bytes),
      headers: link ? `${metadataHeaders}link: ${link}\r\n` : metadataHeaders,
      chunks: [bytes],
      encode: encodeWhole(bytes, encoded => {
        encodedBytes += encoded.length
        if (kept.peek(name) !== representation) return
        // The library leaves the size of a value as it is when the same value is set again.
        kept.delete(name)
        kept.set(name, representation, { size: bytes.length + name.length + objectBytes + encodedBytes })
      }),
    }
    kept.set(name, representation)
    return representation
  }
}
