// Reads the head of a request that Node's parser refuses for its URL or its size. After a fault the parser refuses every
// further chunk and reports it with its bytes; the head is put together from those. unparsable.ts answers the request.

export type InvalidHead = {
  /** The request line as far as it can be made out; empty words otherwise. */
  readonly method: string
  readonly url: string
  readonly httpVersion: string
  /** By lower-case name; a header that came more than once is joined by commas. */
  readonly headers: Readonly<Record<string, string>>
}

export type InvalidHeadReader = {
  /**
   * Takes a chunk that the parser reported as faulty; undefined where the parser had none.
   * @param faultAt where in the first chunk the fault is
   * @returns whether the head is complete
   */
  take(chunk: Buffer | undefined, faultAt: number): boolean
  head(): InvalidHead
}

/** The part of a head that is read: enough for a URL within the limits of proxies, and some headers. */
const maxHeadBytes = 64 * 1024

export const readInvalidHead = (): InvalidHeadReader => {
  const bytes = Buffer.allocUnsafe(maxHeadBytes)
  let length = 0
  const read = () => bytes.subarray(0, length)

  return {
    take: (chunk, faultAt) => {
      if (!chunk) return true
      const searchedTo = Math.max(0, length - endOfHead.length)
      // Whole requests may stand before the one at fault.
      length += chunk.copy(bytes, length, length === 0 ? startOf(chunk, faultAt) : 0)
      return length === maxHeadBytes || read().includes(endOfHead, searchedTo)
    },
    head: () => {
      const end = read().indexOf(endOfHead)
      const [requestLine = '', ...lines] = read()
        .subarray(0, end === -1 ? length : end)
        .toString()
        .split('\r\n')
      const headers: Record<string, string> = Object.create(null)
      for (const [, name = '', value = ''] of lines.map(line => headerLine.exec(line) ?? [])) {
        const before = headers[name.toLowerCase()]
        headers[name.toLowerCase()] = before === undefined ? value : `${before}, ${value}`
      }
      const [, method = '', url = '', httpVersion = ''] =
        /^([A-Z]+) (.*?)(?: HTTP\/(1\.[01]))?$/s.exec(requestLine) ?? []
      return { method, url, httpVersion, headers }
    },
  }
}

const endOfHead = '\r\n\r\n'
const headerLine = /^([A-Za-z0-9-]+):[ \t]*(.*?)[ \t]*$/

const startOf = (chunk: Buffer, faultAt: number): number => {
  const before = chunk.lastIndexOf(endOfHead, Math.max(0, faultAt - endOfHead.length))
  return before === -1 || faultAt < endOfHead.length ? 0 : before + endOfHead.length
}
