// Sends requests from the reference page with the typed key, which stays in its fields and goes only to this gateway.

/**
 * @template {Element} Found
 * @param {ParentNode} within
 * @param {string} selector
 * @returns {Found}
 */
const find = (within, selector) => {
  const found = within.querySelector(selector)
  if (!found) throw new Error(`the page has no ${selector}`)
  return /** @type {Found} */ (found)
}

/**
 * A text of the page with its values.
 * @param {'sending' | 'notSent' | 'status'} name
 * @param {...(string | number)} values
 */
const say = (name, ...values) =>
  (document.body.dataset[name] ?? '').replaceAll(/\{(\d)\}/g, (_, at) => String(values[Number(at)]))

/** @param {HTMLFormElement} form */
const urlOf = form => {
  const query = new URLSearchParams()
  let path = form.dataset.path ?? ''
  for (const field of form.querySelectorAll('[data-in]')) {
    const { name, value, dataset } = /** @type {HTMLInputElement} */ (field)
    if (dataset.in === 'path') path = path.replace(`{${name}}`, encodeURIComponent(value))
    else if (value !== '') query.set(name, value)
  }
  return query.size === 0 ? path : `${path}?${query}`
}

/** @param {string} text */
const pretty = text => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** @param {HTMLFormElement} form */
const send = async form => {
  const key = keyField.value.trim()
  const url = urlOf(form)
  /** @type {HTMLElement} */
  const result = find(form, '.result')
  const status = find(form, '.status')
  const headers = find(form, '.headers')
  const body = find(form, '.answer')
  result.hidden = false
  find(form, '.url code').textContent = `GET ${url}`
  status.textContent = say('sending')
  headers.textContent = ''
  body.textContent = ''
  const started = performance.now()
  try {
    // Relative to this page, which a proxy may serve under a path.
    const response = await fetch(`.${url}`, {
      headers: key === '' ? {} : { 'x-api-key': key },
      credentials: 'omit',
      cache: 'no-store',
    })
    const text = await response.text()
    status.textContent = say('status', response.status, Math.round(performance.now() - started))
    headers.textContent = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
    body.textContent = pretty(text)
  } catch (error) {
    status.textContent = say('notSent', String(error))
  }
}

/** @type {HTMLInputElement} */
const keyField = find(document, '#key')
/** @type {NodeListOf<HTMLInputElement>} */
const keyFields = document.querySelectorAll('input[type="password"]')
for (const changed of keyFields)
  changed.addEventListener('input', () => {
    for (const field of keyFields) field.value = changed.value
  })
for (const { firstElementChild: program } of document.querySelectorAll('.program'))
  if (program)
    program.textContent = (program.textContent ?? '').replaceAll(
      document.body.dataset.origin ?? '',
      new URL('.', location.href).href.slice(0, -1),
    )
for (const form of document.querySelectorAll('form')) {
  /** @type {HTMLButtonElement} */
  const button = find(form, 'button')
  form.addEventListener('submit', event => {
    event.preventDefault()
    void send(form)
  })
  button.disabled = false
}
