// Requests to the ops listener that served this page: token, JSON, and errors as one sentence.

const keptAs = 'abohawa.token'

/** Storage may be forbidden; then a token lasts as long as the page. @param {(storage: Storage) => string | null | void} use */
const tryStorage = use => {
  try {
    return use(sessionStorage)
  } catch {}
}
/** @type {string | null} */
let held = tryStorage(storage => storage.getItem(keptAs)) ?? null

/** The listener wants a token, or another one. */
export class TokenNeeded extends Error {}

/** The listener answered with an error; the message is its own sentence. */
export class Refused extends Error {}

export const token = {
  /** @returns {string | null} */
  get: () => held,
  /** @param {string} value for as long as this tab is open */
  set: value => {
    held = value
    tryStorage(storage => storage.setItem(keptAs, value))
  },
  forget: () => {
    held = null
    tryStorage(storage => storage.removeItem(keptAs))
  },
}

/** @param {string} path @param {RequestInit} [init] @returns {Promise<Response>} @throws {TokenNeeded | Refused | TypeError} */
const send = async (path, init = {}) => {
  const value = token.get()
  const headers = new Headers(init.headers)
  // A header holds no other characters, and so no token does.
  if (value !== null && !/^[\x21-\x7e]+$/.test(value)) throw new TokenNeeded('the token is wrong')
  if (value !== null) headers.set('authorization', `Bearer ${value}`)
  // Relative to the page, which a proxy may serve under a path.
  const response = await fetch(`.${path}`, { ...init, headers })
  if (response.ok) return response
  const body = await response.json().catch(() => null)
  const sentence = typeof body?.error === 'string' ? body.error : `${response.status} ${response.statusText}`
  throw response.status === 401 ? new TokenNeeded(sentence) : new Refused(sentence)
}

/** @param {string} path @param {AbortSignal} [signal] */
export const read = async (path, signal) => (await send(path, signal ? { signal } : {})).json()

/** @param {string} path @param {object} [body] sent as JSON */
export const order = async (path, body) =>
  (
    await send(path, {
      method: 'POST',
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
  ).json()
