# Turns the launches and the inline assembly of a kernel file into C++: cmake -DFROM=x.cu -DTO=x.cc -P launch_syntax.cmake
file(READ "${FROM}" text)
string(REPLACE ";" "\\semicolon" text "${text}")
string(REGEX REPLACE "([A-Za-z_]+(<[A-Za-z:]+>)?)[ \n]*<<<" "EMULATED_LAUNCH(\\1, " text "${text}")
string(REPLACE ">>>(" ")(" text "${text}")
string(REGEX REPLACE "asm volatile\\(\"mov.u64 %0, %%globaltimer\\\\semicolon\" : \"=l\"\\(([a-z]+)\\)\\)" "\\1 = emulated::nanoseconds()" text "${text}")
string(REGEX REPLACE "asm volatile\\(\"mov.u32 %0, %%smid\\\\semicolon\" : \"=r\"\\(([a-z]+)\\)\\)" "\\1 = emulated::multiprocessor()" text "${text}")
string(REPLACE "\\semicolon" ";" text "${text}")
file(WRITE "${TO}" "${text}")
