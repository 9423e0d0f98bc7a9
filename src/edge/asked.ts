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
  readonly transferEncoding: string | undefined
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
    transferEncoding: undefined,
  }
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const given = raw[i] as string
    const fields = fieldsByLength[given.length]
    if (!fields) continue
    const header = given.toLowerCase()
    for (const field of fields) {
      if (header !== field.header) continue
      const before = asked[field.name]
      asked[field.name] = before === undefined ? raw[i + 1] : `${before}, ${raw[i + 1]}`
    }
  }
  return asked
}

type Field = { readonly header: string; readonly name: keyof Asked }

// Few headers have one of these lengths, so that most are passed over at a look.
const fieldsByLength: readonly (readonly Field[] | undefined)[] = Object.entries({
  host: 'host',
  'x-api-key': 'key',
  'x-request-id': 'requestId',
  'if-none-match': 'ifNoneMatch',
  'accept-encoding': 'acceptEncoding',
  'x-forwarded-proto': 'forwardedProto',
  'transfer-encoding': 'transferEncoding',
} as const).reduce<Field[][]>((byLength, [header, name]) => {
  byLength[header.length] = [...(byLength[header.length] ?? []), { header, name }]
  return byLength
}, [])
