// The headers that the API reads, taken in one pass from those that came. Node would put all of a request's headers into
// an object of its own first, which costs more than finding the few that matter here.

/** Values as they came, without blanks around; a header that came more than once is joined by commas, as HTTP has it. */
export type Asked = {
  readonly host: string | undefined
  readonly key: string | undefined
  readonly requestId: string | undefined
  readonly ifNoneMatch: string | undefined
  readonly acceptEncoding: string | undefined
  readonly forwardedProto: string | undefined
}

type Mutable = { -readonly [name in keyof Asked]: Asked[name] }

/** @param raw names and values in turn, as Node has them */
export const askedIn = (raw: readonly string[]): Asked => {
  const asked: Mutable = {
    host: undefined,
    key: undefined,
    requestId: undefined,
    ifNoneMatch: undefined,
    acceptEncoding: undefined,
    forwardedProto: undefined,
  }
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string
    const field = fieldsByLength[name.length]
    if (!field || name.toLowerCase() !== field.header) continue
    const before = asked[field.name]
    asked[field.name] = before === undefined ? raw[i + 1] : `${before}, ${raw[i + 1]}`
  }
  return asked
}

// No two of them are of one length.
const fieldsByLength: readonly ({ readonly header: string; readonly name: keyof Asked } | undefined)[] =
  Object.entries({
    host: 'host',
    'x-api-key': 'key',
    'x-request-id': 'requestId',
    'if-none-match': 'ifNoneMatch',
    'accept-encoding': 'acceptEncoding',
    'x-forwarded-proto': 'forwardedProto',
  } as const).reduce<{ header: string; name: keyof Asked }[]>((byLength, [header, name]) => {
    byLength[header.length] = { header, name }
    return byLength
  }, [])
