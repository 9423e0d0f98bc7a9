// Arrivals that wait for a connection, by their numbers. What a stalled target leaves waiting may be millions, so they don't move up
// each time.

export class Queue {
  #arrivals: number[] = []
  #front = 0

  /** The one that has waited longest. */
  get first(): number | undefined {
    return this.#arrivals[this.#front]
  }
  push(arrival: number): void {
    this.#arrivals.push(arrival)
  }
  shift(): void {
    this.#front += 1
    if (this.#front < 10_000 || this.#front * 2 < this.#arrivals.length) return
    this.#arrivals = this.#arrivals.slice(this.#front)
    this.#front = 0
  }
  clear(): void {
    this.#front = this.#arrivals.length
  }
}
