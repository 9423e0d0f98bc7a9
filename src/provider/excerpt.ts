// What the provider sent, as it may stand in a sentence of ours: on one line, cut to a safe length, without characters
// that steer a terminal or turn text around.

const mostCharacters = 80

/** A text as it is, any other value as JSON; both cut. */
export const excerptOf = (value: unknown, most = mostCharacters): string => {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing')
  const cut = text.length > most ? `${text.slice(0, most)}…` : text
  return cut.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
}
