// A server on a moved clock that answers no request, and takes the commands of its parent. For moved-clock-commands.test.ts.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMovedClock } from '../../src/common/moved-clock.ts'
import { takeCommands } from '../../src/common/moved-clock-commands.ts'

const server = createServer().listen(0, '127.0.0.1', () =>
  takeCommands(createMovedClock(0), { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
)
