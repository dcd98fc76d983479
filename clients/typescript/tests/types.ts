// Checked by TypeScript's compiler, and not run: the declarations say what the server says.

import { Client, Conflict, type Event } from "../src/index.js";

export async function types(client: Client): Promise<void> {
  const thread: string = (await client.postThreads({ title: "Types" })).thread;
  const view = (await client.getThreadEntries(thread, { limit: 5 })).items[0];
  const id: string | undefined = view?.id;
  // @ts-expect-error: entries are required
  await client.postThreadEntries(thread, {});
  // @ts-expect-error: a title is text
  await client.postThreadRename(thread, { title: 3 });
  // @ts-expect-error: no such method
  await client.getNothing();
  for await (const event of client.events({ thread, after: 0 })) {
    const one: Event = event;
    void one;
  }
  const current = (error: Conflict): number | undefined => error.current;
  void [id, current];
}
