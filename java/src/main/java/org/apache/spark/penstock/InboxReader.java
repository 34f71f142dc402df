package org.apache.spark.penstock;

import java.io.IOException;
import java.util.NoSuchElementException;
import org.penstock.bridge.Inbox;
import scala.Product2;
import scala.collection.AbstractIterator;

/** Gives Spark what comes into the inbox of a task, until all of its writers have ended. */
class InboxReader<K, C> extends AbstractIterator<Product2<K, C>> {
  private final Inbox<Object> inbox;
  private final TaskWatch watch;
  private boolean begun;
  private Object next;

  InboxReader(Inbox<Object> inbox, TaskWatch watch) {
    this.inbox = inbox;
    this.watch = watch;
  }

  /** Before the first row is waited for. */
  void begin() throws IOException, InterruptedException {}

  /** What Spark gets of a row that was taken out. */
  Object unpacked(Object taken) {
    return taken;
  }

  @Override
  public boolean hasNext() {
    try {
      if (!begun) {
        begin();
        begun = true;
      }
      while (next == null) {
        Object taken = inbox.take(TaskWatch.LOOK_MS);
        if (taken != null) {
          next = unpacked(taken);
        } else if (inbox.isOver()) {
          return false;
        }
        if (taken == null || watch.hasFailed()) {
          watch.check();
        }
      }
      return true;
    } catch (InterruptedException cancelled) {
      throw TaskWatch.cancelled(cancelled);
    } catch (IOException unreachable) {
      throw new IllegalStateException("the tasks that send here cannot be reached", unreachable);
    }
  }

  @Override
  @SuppressWarnings("unchecked")
  public Product2<K, C> next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    Product2<K, C> taken = (Product2<K, C>) next;
    next = null;
    return taken;
  }
}
