// The value of a metric of a gateway.

import { request } from 'undici'

/** @param name with its labels as exposed; undefined while there is none @param reset closes the connection */
export const metricOf = async (opsUrl: string, name: string, reset = false): Promise<number | undefined> => {
  const text = await (await request(`${opsUrl}/metrics`, { reset })).body.text()
  const line = text.split('\n').find(each => each.startsWith(`${name} `))
  return line === undefined ? undefined : Number(line.slice(name.length + 1))
}
