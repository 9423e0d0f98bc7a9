// A real browser for tests of pages: Chromium from the path, steered by playwright-core. What a page says on its console and
// which addresses it asks is kept, so that a test can hold that there was nothing amiss.

import { spawnSync } from 'node:child_process'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { runs } from './programs.ts'
import type { Teardown } from './teardown.ts'
import { patienceMs, until } from './until.ts'

/** Chromium without the parts for a screen, which starts in a fifth of the processor time; the pages are drawn alike. */
export const lightBrowser = 'chromium-headless-shell'

/** The command of an installed Chromium, if there is one. */
export const browser = [lightBrowser, 'chromium', 'chromium-browser', 'google-chrome'].find(name =>
  runs(name, '--version'),
)

/** For tests that need it: false, or why they are skipped. */
export const withoutBrowser: string | false = browser === undefined && 'needs chromium on the path'

export type WatchedPage = Page & {
  /** Errors and warnings of the console, and exceptions that nobody caught. */
  readonly complaints: string[]
  /** The URL of every request. */
  readonly asked: string[]
}

/** Opens a page that ends with `owner`; without one it ends with the browser. */
export type OpenPage = (options?: BrowserContextOptions, owner?: Teardown) => Promise<WatchedPage>

/** `until` for what a page shows: it looks less often, since each look keeps the browser from its work. */
export const untilSeen = <Found>(what: string, look: () => Found) => until(what, look, { everyMs: 40 })

/** A browser without a page, which its caller closes. */
export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: spawnSync('which', [browser ?? ''], { encoding: 'utf8' }).stdout.trim(),
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
    timeout: patienceMs,
  })

/** Starts a browser that ends with the test; each page has its own storage. Without a browser no page can be opened. */
export const startBrowser = async (t: Teardown): Promise<OpenPage> => {
  if (withoutBrowser) return () => Promise.reject(new Error('no browser'))
  const running = await launchBrowser()
  t.teardown(() => running.close())
  return async (options, owner = t) => {
    const context = await running.newContext({ locale: 'en-GB', ...options })
    owner.teardown(() => context.close())
    context.setDefaultTimeout(patienceMs)
    const page = await context.newPage()
    const complaints: string[] = []
    const asked: string[] = []
    page.on('console', message => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
    })
    page.on('pageerror', error => complaints.push(String(error)))
    page.on('request', request => asked.push(request.url()))
    return Object.assign(page, { complaints, asked })
  }
}
