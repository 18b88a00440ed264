"""The body of the native entry, from the arguments to the result, in LLVM text with the macros of ``entry_code``.

It checks the arguments (``@take``), makes arrays for the results, runs the program, without the interpreter's lock if
it is a long one, makes scalars of numbers, and builds the result on a stack.  If something fails, everything that was
made is released.  While the lock is not held, another thread may take an argument out of its list, so all arguments
are held until nothing reads them any more.  The numbers after ``%plan`` are positions in ``entry.HEAD``.
"""

from __future__ import annotations

ENTRY = """
define i64 @nothing(ptr %slots, ptr %arena) {
  ret i64 0
}

define ptr @entry(ptr %self, ptr %args, i64 %given, ptr %names) {
start:
  %bytes = field ptr %self TUPLE_ITEMS
  %plan = at %bytes BYTES_DATA
  %expected = word %plan 1
  %takes = word %plan 2
  %results = word %plan 3
  %slot.count = word %plan 4
  %arena.size = word %plan 5
  %arena.from = word %plan 6
  %release = word %plan 7
  %container.count = word %plan 8
  %steps = word %plan 9
  %containers = alloca ptr, i64 %container.count
  %slots = alloca ptr, i64 %slot.count
  %kept = alloca ptr, i64 %takes
  %numbers = alloca i64, i64 %takes
  %objects = alloca ptr, i64 %results
  %memories = alloca ptr, i64 %results
  %scalars = alloca [2 x i64], i64 %results, align 16
  %stack = alloca ptr, i64 %steps
  %flag = alloca i64
  store i64 0, ptr %flag
  %right.count = icmp eq i64 %given, %expected
  %no.names = icmp eq ptr %names, null
  %switch = pointer %plan 15
  %switched = load i64, ptr %switch
  %off = icmp eq i64 %switched, 0
  %right = and i1 %right.count, %off
  %counted = and i1 %right, %no.names
  br i1 %counted, label %begin, label %otherwise
begin:
  store ptr %args, ptr %containers
  %slots.at = word %plan 13
  %first.slot = getelementptr i64, ptr %plan, i64 %slots.at
  %slot.bytes = shl i64 %slot.count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %slots, ptr %first.slot, i64 %slot.bytes, i1 false)
  %check = word %plan 16
  %flag.to = getelementptr ptr, ptr %slots, i64 %check
  store ptr %flag, ptr %flag.to
  %takes.at = word %plan 10
  br label %taking
taking:
  %t = phi i64 [0, %begin], [%t.next, %took]
  %t.at = phi i64 [%takes.at, %begin], [%t.after, %took]
  %t.more = icmp slt i64 %t, %takes
  br i1 %t.more, label %take, label %making
take:
  %record = getelementptr i64, ptr %plan, i64 %t.at
  %keep.to = getelementptr ptr, ptr %kept, i64 %t
  %number.to = getelementptr i64, ptr %numbers, i64 %t
  %fits = call i1 @take(ptr %record, ptr %containers, ptr %slots, ptr %keep.to, ptr %number.to)
  br i1 %fits, label %took, label %otherwise
took:
  %t.next = add i64 %t, 1
  %t.rank = word %record 7
  %t.past = add i64 %t.at, 9
  %t.after = add i64 %t.past, %t.rank
  br label %taking
otherwise:
  %self.next = getelementptr i8, ptr %self, i64 TUPLE_ITEMS
  %next.function = pointer %self.next 1
  %handed = call ptr @PyObject_Vectorcall(ptr %next.function, ptr %args, i64 %given, ptr %names)
  ret ptr %handed

making:
  %results.at = word %plan 11
  %hand = word %plan 14
  %by.hand = icmp ne i64 %hand, 0
  br i1 %by.hand, label %collect, label %first
collect:
  %l = phi i64 [0, %making], [%l.next, %collected]
  %n = phi i64 [0, %making], [%n.next, %collected]
  %l.more = icmp slt i64 %l, %takes
  br i1 %l.more, label %collected, label %hand.over
collected:
  %l.object = pointer %kept %l
  %n.to = getelementptr ptr, ptr %numbers, i64 %n
  store ptr %l.object, ptr %n.to
  %l.next = add i64 %l, 1
  %is.leaf = icmp ne ptr %l.object, null
  %is.one = zext i1 %is.leaf to i64
  %n.next = add i64 %n, %is.one
  br label %collect
hand.over:
  %self.hand = getelementptr i8, ptr %self, i64 TUPLE_ITEMS
  %hand.function = pointer %self.hand 2
  %by.others = call ptr @PyObject_Vectorcall(ptr %hand.function, ptr %numbers, i64 %n, ptr null)
  ret ptr %by.others
first:
  br label %make
make:
  %m = phi i64 [0, %first], [%m.next, %made]
  %m.at = phi i64 [%results.at, %first], [%m.after, %made]
  %m.more = icmp slt i64 %m, %results
  br i1 %m.more, label %new, label %ready
new:
  %about = getelementptr i64, ptr %plan, i64 %m.at
  %m.rank = word %about 4
  %m.object = getelementptr ptr, ptr %objects, i64 %m
  %m.next = add i64 %m, 1
  %m.past = add i64 %m.at, 5
  %m.after = add i64 %m.past, %m.rank
  %is.array = icmp ne i64 %m.rank, 0
  br i1 %is.array, label %array, label %scalar
array:
  %fresh = call ptr @pooled_array(ptr %about)
  store ptr %fresh, ptr %m.object
  %no.array = icmp eq ptr %fresh, null
  br i1 %no.array, label %failed, label %its.data
its.data:
  %data = field ptr %fresh ARRAY_DATA
  br label %made
scalar:
  store ptr null, ptr %m.object
  %own = getelementptr [2 x i64], ptr %scalars, i64 %m
  br label %made
made:
  %memory = phi ptr [%data, %its.data], [%own, %scalar]
  %memory.to = getelementptr ptr, ptr %memories, i64 %m
  store ptr %memory, ptr %memory.to
  %m.slot = word %about 0
  %copied.only = icmp slt i64 %m.slot, 0
  %m.last = sub i64 %slot.count, 1
  %m.place = select i1 %copied.only, i64 %m.last, i64 %m.slot
  %slot.to = getelementptr ptr, ptr %slots, i64 %m.place
  store ptr %memory, ptr %slot.to
  br label %make

ready:
  %given.arena = icmp sge i64 %arena.from, 0
  br i1 %given.arena, label %theirs, label %ours
theirs:
  %lent.any = word %slots %arena.from
  %lent.over = add i64 %lent.any, 63
  %lent.at = and i64 %lent.over, -64
  %lent = inttoptr i64 %lent.at to ptr
  br label %run
ours:
  %needed = icmp ne i64 %arena.size, 0
  br i1 %needed, label %need, label %run
need:
  %taken = call ptr @pool_take(i64 %arena.size)
  %short = icmp eq ptr %taken, null
  br i1 %short, label %no.memory, label %run
no.memory:
  %ignored = call ptr @PyErr_NoMemory()
  br label %failed
run:
  %arena = phi ptr [%lent, %theirs], [null, %ours], [%taken, %need]
  %code.at = pointer %plan 0
  %code = load ptr, ptr %code.at
  %alone = icmp eq i64 %release, 0
  %holding = select i1 %alone, i64 0, i64 %takes
  br i1 %alone, label %locked, label %hold
locked:
  %locked.again = call i64 %code(ptr %slots, ptr %arena)
  br label %ran
hold:
  %h = phi i64 [0, %run], [%h.next, %held]
  %h.more = icmp slt i64 %h, %takes
  br i1 %h.more, label %held, label %unlocked
held:
  %h.object = pointer %kept %h
  call void @Py_IncRef(ptr %h.object)
  %h.next = add i64 %h, 1
  br label %hold
unlocked:
  %thread = call ptr @PyEval_SaveThread()
  %unlocked.again = call i64 %code(ptr %slots, ptr %arena)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ran

ran:
  %again = phi i64 [%locked.again, %locked], [%unlocked.again, %unlocked]
  br i1 %given.arena, label %giving, label %give.back
give.back:
  call void @pool_give(ptr %arena)
  br label %giving
giving:
  %flagged = load i64, ptr %flag
  %flags = or i64 %flagged, %again
  %is.wrong = icmp ne i64 %flags, 0
  br i1 %is.wrong, label %wrong, label %give
wrong: drop %results of %objects after %giving then %wrong.held
wrong.held: drop %holding of %kept after %wrong then %otherwise
give:
  %g = phi i64 [0, %giving], [%g.next, %gave]
  %g.at = phi i64 [%results.at, %giving], [%g.after, %gave]
  %g.more = icmp slt i64 %g, %results
  br i1 %g.more, label %one, label %drop
one:
  %its = getelementptr i64, ptr %plan, i64 %g.at
  %g.next = add i64 %g, 1
  %g.rank = word %its 4
  %g.past = add i64 %g.at, 5
  %g.after = add i64 %g.past, %g.rank
  %g.memory = pointer %memories %g
  %source = word %its 1
  %is.copy = icmp sge i64 %source, 0
  br i1 %is.copy, label %copy, label %whole
copy:
  %g.bytes = word %its 2
  %g.from = pointer %slots %source
  call void @llvm.memcpy.p0.p0.i64(ptr %g.memory, ptr %g.from, i64 %g.bytes, i1 false)
  br label %whole
whole:
  %g.array = icmp ne i64 %g.rank, 0
  br i1 %g.array, label %gave, label %number.made
number.made:
  %g.dtype = pointer %its 3
  %is.float = icmp eq ptr %g.dtype, null
  br i1 %is.float, label %float.made, label %numpy.made
float.made:
  %g.double = load double, ptr %g.memory
  %g.float = call ptr @PyFloat_FromDouble(double %g.double)
  br label %one.made
numpy.made:
  %g.scalar = call ptr @PyArray_Scalar(ptr %g.memory, ptr %g.dtype, ptr null)
  br label %one.made
one.made:
  %g.number = phi ptr [%g.float, %float.made], [%g.scalar, %numpy.made]
  %g.object = getelementptr ptr, ptr %objects, i64 %g
  store ptr %g.number, ptr %g.object
  %no.number = icmp eq ptr %g.number, null
  br i1 %no.number, label %failed, label %gave
gave:
  br label %give
drop: drop %holding of %kept after %give then %building

building:
  %steps.at = word %plan 12
  %first.step = getelementptr i64, ptr %plan, i64 %steps.at
  br label %build
build:
  %s = phi i64 [0, %building], [%s.next, %pushed]
  %height = phi i64 [0, %building], [%height.next, %pushed]
  %s.more = icmp slt i64 %s, %steps
  br i1 %s.more, label %step, label %done
step:
  %s.next = add i64 %s, 1
  %s.words = mul i64 %s, 3
  %what = getelementptr i64, ptr %first.step, i64 %s.words
  %kind = word %what 0
  %count = word %what 1
  %object = pointer %what 2
  %below = sub i64 %height, %count
  %parts = getelementptr ptr, ptr %stack, i64 %below
  %part.bytes = shl i64 %count, 3
  switch i64 %kind, label %result
    [i64 1, label %tuple i64 2, label %other.tuple i64 3, label %list i64 4, label %dict i64 5, label %object.given]
result:
  %r.object = pointer %objects %count
  store ptr null, ptr %r.object.a
  br label %push
object.given:
  call void @Py_IncRef(ptr %object)
  br label %push
tuple:
  %plain = call ptr @PyTuple_New(i64 %count)
  %no.plain = icmp eq ptr %plain, null
  br i1 %no.plain, label %failed, label %filled
other.tuple:
  %typed = call ptr @PyType_GenericAlloc(ptr %object, i64 %count)
  %no.typed = icmp eq ptr %typed, null
  br i1 %no.typed, label %failed, label %unhashed
unhashed:
  UNHASHED
  br label %filled
filled:
  %a.tuple = phi ptr [%plain, %tuple], [%typed, %unhashed]
  %tuple.items = at %a.tuple TUPLE_ITEMS
  call void @llvm.memcpy.p0.p0.i64(ptr %tuple.items, ptr %parts, i64 %part.bytes, i1 false)
  br label %push
list:
  %a.list = call ptr @PyList_New(i64 %count)
  %no.list = icmp eq ptr %a.list, null
  br i1 %no.list, label %failed, label %listed
listed:
  %list.items = field ptr %a.list LIST_ITEMS
  call void @llvm.memcpy.p0.p0.i64(ptr %list.items, ptr %parts, i64 %part.bytes, i1 false)
  br label %push
dict:
  %a.dict = call ptr @PyDict_New()
  %no.dict = icmp eq ptr %a.dict, null
  br i1 %no.dict, label %failed, label %entries
entries:
  %keys = at %object TUPLE_ITEMS
  br label %entry.next
entry.next:
  %e = phi i64 [0, %entries], [%e.next, %entered]
  %e.more = icmp slt i64 %e, %count
  br i1 %e.more, label %enter, label %emptied
enter:
  %key = pointer %keys %e
  %part = pointer %parts %e
  %status = call i32 @PyDict_SetItem(ptr %a.dict, ptr %key, ptr %part)
  %refused = icmp slt i32 %status, 0
  br i1 %refused, label %spoiled, label %entered
entered:
  %e.next = add i64 %e, 1
  br label %entry.next
spoiled:
  call void @Py_DecRef(ptr %a.dict)
  br label %failed
emptied: drop %count of %parts after %entry.next then %push
push:
  %new.object = phi ptr [%r.object, %result], [%object, %object.given], [%a.tuple, %filled],
    [%a.list, %listed], [%a.dict, %emptied]
  %base = phi i64 [%height, %result], [%height, %object.given], [%below, %filled], [%below, %listed],
    [%below, %emptied]
  %top = getelementptr ptr, ptr %stack, i64 %base
  store ptr %new.object, ptr %top
  %height.next = add i64 %base, 1
  br label %pushed
pushed:
  br label %build
done:
  %answer = load ptr, ptr %stack
  ret ptr %answer

failed:
  %known = phi i64 [%m.next, %array], [%results, %no.memory], [%results, %one.made], [%results, %tuple],
    [%results, %other.tuple], [%results, %list], [%results, %dict], [%results, %spoiled]
  %stacked = phi i64 [0, %array], [0, %no.memory], [0, %one.made], [%height, %tuple],
    [%height, %other.tuple], [%height, %list], [%height, %dict], [%height, %spoiled]
  %still.held = phi i64 [0, %array], [0, %no.memory], [%holding, %one.made], [0, %tuple],
    [0, %other.tuple], [0, %list], [0, %dict], [0, %spoiled]
  br label %let.go
let.go: drop %still.held of %kept after %failed then %clean
clean: drop %known of %objects after %let.go then %unstack
unstack: drop %stacked of %stack after %clean then %gone
gone:
  ret ptr null
}
"""
