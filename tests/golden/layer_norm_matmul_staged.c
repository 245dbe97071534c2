// r_128: in0 tmp0
void r_128(float* restrict data0, float* restrict data1) {
  for (int ridx0 = 0; ridx0 < 128; ridx0++) {
    float acc0;
    acc0 = 0.0f;
    for (int ridx1 = 0; ridx1 < 256; ridx1++) {
      float val1 = acc0;
      float val2 = data0[((ridx0*256)+ridx1)];
      acc0 = (val1+val2);
    }
    float val3 = acc0;
    data1[ridx0] = val3;
  }
}

// r_128: in0 tmp0 tmp1
void r_128(float* restrict data0, float* restrict data1, float* restrict data2) {
  for (int ridx0 = 0; ridx0 < 128; ridx0++) {
    float acc0;
    acc0 = 0.0f;
    float val1 = data1[ridx0];
    for (int ridx1 = 0; ridx1 < 256; ridx1++) {
      float val2 = acc0;
      float val3 = data0[((ridx0*256)+ridx1)];
      float alu4 = (val3+((val1*0.00390625f)*-1.0f));
      acc0 = (val2+(alu4*alu4));
    }
    float val5 = acc0;
    data2[ridx0] = val5;
  }
}

// e_128_256: in0 tmp0 tmp1 tmp2
#include <math.h>

void e_128_256(float* restrict data0, float* restrict data1, float* restrict data2, float* restrict data3) {
  for (int ridx0 = 0; ridx0 < 128; ridx0++) {
    float val1 = data1[ridx0];
    float val2 = data2[ridx0];
    for (int ridx1 = 0; ridx1 < 256; ridx1++) {
      int alu3 = ((ridx0*256)+ridx1);
      float val4 = data0[alu3];
      data3[alu3] = ((val4+((val1*0.00390625f)*-1.0f))*(1.0f/sqrtf(((val2*0.00390625f)+1e-05f))));
    }
  }
}

// r_128_256: tmp2 in1 out0
void r_128_256(float* restrict data0, float* restrict data1, float* restrict data2) {
  for (int ridx0 = 0; ridx0 < 128; ridx0++) {
    int alu1 = (ridx0*256);
    for (int ridx1 = 0; ridx1 < 256; ridx1++) {
      float acc0;
      acc0 = 0.0f;
      for (int ridx2 = 0; ridx2 < 256; ridx2++) {
        float val2 = acc0;
        float val3 = data0[(alu1+ridx2)];
        float val4 = data1[((ridx2*256)+ridx1)];
        acc0 = (val2+(val3*val4));
      }
      float val5 = acc0;
      data2[(alu1+ridx1)] = val5;
    }
  }
}
