// Reads text/event-stream from the body of a fetch: EventSource can't send the token. Knows `event` and `data`, which is all
// that the gateway sends.

/**
 * @param {ReadableStream<Uint8Array>} body
 * @param {(event: string, data: string) => void} onEvent
 * @returns {Promise<void>} at the end of the stream
 */
export const readEvents = async (body, onEvent) => {
  const reader = body
    .pipeThrough(/** @type {TransformStream<Uint8Array, string>} */ (new TextDecoderStream()))
    .getReader()
  let rest = ''
  let event = 'message'
  /** @type {string[]} */
  let data = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + value).split(/\r?\n/)
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) onEvent(event, data.join('\n'))
        event = 'message'
        data = []
      } else if (line.startsWith('event:')) event = line.slice(6).trim()
      else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
    }
  }
}
