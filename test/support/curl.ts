// Whether the tests that send requests with curl run. A curl without HTTP/2 counts as none: it would prove less than they say.

import { spawnSync } from 'node:child_process'

export const hasCurl = (): boolean =>
  spawnSync('curl', ['-V'], { encoding: 'utf8' }).stdout?.includes('HTTP2') === true

/** For tests with curl: false, or why they are skipped. */
export const withoutCurl: string | false = hasCurl() ? false : 'needs a curl with HTTP/2'
